// SPDX-License-Identifier: Apache-2.0

//go:build go1.18
// +build go1.18

package main

type pair[K comparable, V any] struct {
	key   K
	value V
}

func (p *pair[K, V]) visit(f func(K, V)) { f(p.key, p.value) }

func apply[T any](values []T, f func(T) T) []T {
	for i, v := range values {
		values[i] = once(v, f)
	}
	return values
}

func once[T any](v T, f func(T) T) T {
	record()
	return f(v)
}

//go:noinline
func generics() {
	apply([]int{1, 2}, func(v int) int { record(); return v + 1 })
	apply([]string{"a"}, func(v string) string { record(); return v + "b" })
	(&pair[string, int]{"a", 1}).visit(func(string, int) { record() })
}

func init() { others = append(others, generics) }
