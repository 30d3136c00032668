// SPDX-License-Identifier: Apache-2.0

// Says of each address on its standard input, one in hexadecimal a line, what its runtime would call
// the frames there, innermost first: a line of FUNCTION FILE LINE, separated by tabs, for each, and then
// an empty one. Built by the test.
package main

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"runtime"
)

//go:noinline
func behind() {}

// Versions before Go 1.23 tell the innermost one only.
func frames(pc uintptr) (all []runtime.Frame) {
	// Return addresses, with one behind them, without which inlined frames have no callers.
	last := reflect.ValueOf(behind).Pointer() + 1
	found := runtime.CallersFrames([]uintptr{pc + 1, last})
	for {
		frame, more := found.Next()
		if !more {
			return all
		}
		all = append(all, frame)
	}
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for in.Scan() {
		var pc uintptr
		fmt.Sscanf(in.Text(), "%x", &pc)
		for _, frame := range frames(pc) {
			fmt.Fprintf(out, "%s\t%s\t%d\n", frame.Function, frame.File, frame.Line)
		}
		fmt.Fprintln(out)
	}
}
