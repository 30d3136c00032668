// SPDX-License-Identifier: Apache-2.0

// Goroutines that work, sleep and are interrupted, for two seconds: Go's threads switch between their
// own stacks and those of goroutines, and some of them never leave their own. Others take their
// thread with them when they end, so that there is always one that begins. Built by the test.
package main

import (
	"runtime"
	"sync"
	"time"
)

//go:noinline
func work(rounds int) (x int) {
	for i := 0; i < rounds; i++ {
		x = x*31 + i
	}
	return x
}

//go:noinline
func workUntil(end time.Time) (x int) {
	for time.Now().Before(end) {
		x += work(100000)
		time.Sleep(50 * time.Microsecond)
	}
	return x
}

// Each round ends a thread and begins another.
func replaceThreads(end time.Time) {
	for time.Now().Before(end) {
		var ended sync.WaitGroup
		ended.Add(1)
		go func() {
			defer ended.Done()
			runtime.LockOSThread()
			work(1000)
		}()
		ended.Wait()
	}
}

func main() {
	runtime.GOMAXPROCS(4)
	end := time.Now().Add(2 * time.Second)
	var group sync.WaitGroup
	for i := 0; i < 6; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			workUntil(end)
		}()
	}
	group.Add(1)
	go func() {
		defer group.Done()
		replaceThreads(end)
	}()
	group.Wait()
}
