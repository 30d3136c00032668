// SPDX-License-Identifier: Apache-2.0

// Command render executes a Helm chart's templates as `helm template` does, as far as the chart of this
// repository goes: Go's own text/template with stand-ins for those of Helm's functions that it uses. A
// template that uses another one fails. Standard input has {"Values": ..., "Chart": ..., "Release": ...}
// as JSON, standard output gets the manifests.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"
)

type files struct{ root string }

func (f files) Get(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(f.root, name))
	return string(text), err
}

func toJSON(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		log.Fatal(err)
	}
	return strings.TrimSpace(text.String())
}

// Block style for mappings, so that they can be put below others; JSON, which is YAML as well, for the rest.
func toYAML(value any) string {
	var lines []string
	switch value := value.(type) {
	case map[string]any:
		for key, item := range value {
			lines = append(lines, toJSON(key)+": "+toJSON(item))
		}
		sort.Strings(lines)
	case []any:
		for _, item := range value {
			lines = append(lines, "- "+toJSON(item))
		}
	}
	if len(lines) == 0 {
		return toJSON(value)
	}
	return strings.Join(lines, "\n")
}

func nindent(spaces int, text string) string {
	return "\n" + strings.Repeat(" ", spaces) + strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", spaces))
}

func orDefault(fallback, value any) any {
	if isSet, _ := template.IsTrue(value); isSet {
		return value
	}
	return fallback
}

func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("dict: a key without a value")
	}
	values := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		values[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return values, nil
}

func functions(all *template.Template) template.FuncMap {
	return template.FuncMap{
		"include": func(name string, data any) (string, error) {
			var text strings.Builder
			err := all.ExecuteTemplate(&text, name, data)
			return text.String(), err
		},
		"default":   orDefault,
		"dict":      dict,
		"nindent":   nindent,
		"quote":     func(value any) string { return fmt.Sprintf("%q", fmt.Sprint(value)) },
		"sha256sum": func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) },
		"toJson":    toJSON,
		"toYaml":    toYAML,
	}
}

func main() {
	log.SetFlags(0)
	chart := os.Args[1]
	var input map[string]any
	if err := json.NewDecoder(os.Stdin).Decode(&input); err != nil {
		log.Fatal(err)
	}
	input["Files"] = files{chart}
	all := template.New("").Option("missingkey=error")
	all.Funcs(functions(all))
	if _, err := all.ParseGlob(filepath.Join(chart, "templates", "*")); err != nil {
		log.Fatal(err)
	}
	templates := all.Templates()
	sort.Slice(templates, func(i, j int) bool { return templates[i].Name() < templates[j].Name() })
	for _, one := range templates {
		if filepath.Ext(one.Name()) != ".yaml" && filepath.Ext(one.Name()) != ".txt" {
			continue // what others include
		}
		var text strings.Builder
		if err := one.Execute(&text, input); err != nil {
			log.Fatal(err)
		}
		if filepath.Ext(one.Name()) == ".yaml" {
			fmt.Println("---\n" + text.String())
		}
	}
}
