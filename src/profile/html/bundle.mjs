// SPDX-License-Identifier: Apache-2.0
// Usage: bundle.mjs NODE_MODULES OUTPUT.cc
// Puts the libraries' shipped files, page.css and our scripts into page.html and writes it as C++
// string constants. No bundler: the libraries come as scripts that share the globals `d3` and
// `flamegraph`.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const [nodeModules, output] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const ours = (name) => readFileSync(join(here, name), 'utf8');
const theirs = (path) => readFileSync(join(nodeModules, path), 'utf8');

// In the order in which they need each other.
const libraries = [
  ...['array', 'color', 'dispatch', 'ease', 'format', 'hierarchy', 'interpolate', 'time',
      'time-format', 'timer', 'scale', 'selection', 'transition']
      .map((name) => ({ name: `d3-${name}`, file: `dist/d3-${name}.min.js` })),
  { name: 'd3-flame-graph', file: 'dist/d3-flamegraph.umd.min.js' },
];
const licensed = ['internmap', ...libraries.map(({ name }) => name)];  // d3-array contains internmap
const scripts = ['profile.js', 'call_tree.js', 'flame_view.js', 'table_view.js', 'main.js'];

// Each licence text once, below the packages it is for.
function notices() {
  const packages = new Map();
  for (const name of licensed) {
    const { version, license } = JSON.parse(theirs(`${name}/package.json`));
    const text = theirs(`${name}/LICENSE`).trim();
    packages.set(text, [...(packages.get(text) ?? []), `${name} ${version} (${license})`]);
  }
  const parts = [...packages].map(([text, names]) => `${names.join(', ')}\n\n${text}`);
  return `This page contains these libraries:\n\n${parts.join('\n\n')}`.replaceAll('--', '- -');
}

function checkedScript(text) {
  if (/<\/script|<!--/i.test(text)) throw new Error('a script would end its element early');
  return text;
}

const hashSource = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

const libraryScript = checkedScript(
    libraries.map(({ name, file }) => theirs(join(name, file)).trim()).join('\n'));
const pageScript = checkedScript(
    `(() => {\n'use strict';\n${scripts.map(ours).join('\n')}\n})();\n`);
const parts = {
  notices: notices(),
  policy: [
    "default-src 'none'", `script-src ${hashSource(libraryScript)} ${hashSource(pageScript)}`,
    "style-src 'unsafe-inline'", 'img-src data:', "base-uri 'none'", "form-action 'none'",
  ].join('; '),
  css: ours('page.css'),
  libraries: libraryScript,
  scripts: pageScript,
};

// One pass, so that nothing in what is put in is taken for a place to put something in.
const page = ours('page.html').replace(/@@([a-z]+)@@/g, (place, name) => {
  if (name in parts) return parts[name];
  if (name === 'title' || name === 'profile') return `\0${name}\0`;
  throw new Error(`page.html: nothing to put in at ${place}`);
});
const [beforeTitle, title, beforeProfile, profile, afterProfile, ...rest] = page.split('\0');
if (title !== 'title' || profile !== 'profile' || rest.length !== 0) {
  throw new Error('page.html must have a place for the title and then one for the profile');
}

function constant(name, text) {
  const delimiter = 'PYROMETER';
  if (text.includes(`)${delimiter}"`)) throw new Error('the page ends its C++ literal early');
  return `const std::string_view ${name} =\n    R"${delimiter}(${text})${delimiter}";\n`;
}

writeFileSync(output, `// Made by src/profile/html/bundle.mjs; the page's own text names its licences.
#include "profile/html_page.h"

namespace pyrometer {

${constant('kPageBeforeTitle', beforeTitle)}
${constant('kPageBeforeProfile', beforeProfile)}
${constant('kPageAfterProfile', afterProfile)}
}  // namespace pyrometer
`);
