// SPDX-License-Identifier: Apache-2.0

// Prints what Go's own runtime takes addresses of this program for: one in so many of all its code,
// and the calls that are on the stack in places with many inlined ones.
//
//	address OFFSET FUNCTION FILE LINE IS_INLINED    offset: from main.main; separated by tabs
//	stack                                           then its frames, each in the same form
package main

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"sort"
	"strings"
	"sync"
)

const addresses = 12000

var (
	out    = bufio.NewWriter(os.Stdout)
	anchor uintptr
	others []func() // what needs a newer Go
	sink   int
)

func printFrame(kind string, pc uintptr, frame runtime.Frame) {
	fmt.Fprintf(out, "%s\t%d\t%s\t%s\t%d\t%t\n", kind, int64(pc)-int64(anchor), frame.Function,
		frame.File, frame.Line, frame.Func == nil)
}

//go:noinline
func record() {
	pcs := make([]uintptr, 64)
	pcs = pcs[:runtime.Callers(2, pcs)]
	frames := runtime.CallersFrames(pcs)
	fmt.Fprintln(out, "stack")
	for {
		frame, more := frames.Next()
		if frame.PC != 0 {
			printFrame("frame", frame.PC, frame)
		}
		if !more {
			return
		}
	}
}

type node struct{ value int }

func (n *node) first(v int) int { n.value += n.second(v); return n.value }
func (n *node) second(v int) int {
	return n.third(v) + 1
}
func (n *node) third(v int) int { return fourth(v, n.value) * 2 }
func fourth(a, b int) int       { return fifth(a) - fifth(b) }
func fifth(a int) int           { record(); return a ^ 5 }

func (n node) String() string { record(); return strings.Repeat("x", n.value&3) }

func closure(n int) func() int {
	return func() int {
		f := func() int { record(); return n }
		return f() + fifth(n)
	}
}

//go:noinline
func calls() {
	n := &node{3}
	for i := 0; i < 2; i++ {
		sink += n.first(i)
		sink += n.second(i) + n.third(i)
	}
	sink += closure(sink)()
	values := []int{3, 1, 2}
	sort.Slice(values, func(i, j int) bool { record(); return values[i] < values[j] })
	strings.Map(func(r rune) rune { record(); return r }, "go")
	var once sync.Once
	once.Do(record)
	once.Do(record)
	_ = fmt.Sprint(n, *n)
	defer func() {
		_ = recover()
		record()
	}()
	panic("on purpose")
}

// Where the functions end that lie in one piece with main.main, in this direction.
func boundary(step int) uintptr {
	pc := int(anchor)
	for size := 1 << 16; size > 0; size /= 2 {
		for runtime.FuncForPC(uintptr(pc+step*size)) != nil {
			pc += step * size
		}
	}
	return uintptr(pc)
}

func printAddresses() {
	begin, end := boundary(-1), boundary(1)
	for i := uintptr(0); i < addresses; i++ {
		pc := begin + (end-begin)*i/addresses
		if runtime.GOARCH == "arm64" {
			pc &^= 3
		}
		// Of a return address, what lies one byte before it counts.
		frame, _ := runtime.CallersFrames([]uintptr{pc + 1}).Next()
		function := runtime.FuncForPC(pc)
		if function == nil || frame.PC != pc || function.Entry() != frame.Entry {
			continue
		}
		printFrame("address", pc, frame)
	}
}

func main() {
	anchor = reflect.ValueOf(main).Pointer()
	calls()
	for _, other := range others {
		other()
	}
	printAddresses()
	out.Flush()
}
