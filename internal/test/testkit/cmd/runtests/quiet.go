package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// A test that hangs says nothing. After longestQuiet, or longestOfGuests where guests boot, the test program is asked
// for its goroutines and ends. A package has no limit of its own: how long it takes depends on what runs beside it.
const (
	longestQuiet    = 8 * time.Minute
	longestOfGuests = 20 * time.Minute
)

// tellTime is how long a test program that hangs may take to show its goroutines.
const tellTime = 30 * time.Second

// ofGuests are the packages in which a test waits for emulated guests to boot.
var ofGuests = []string{"./internal/test/kernels", "./internal/lab/qemu"}

// quietOf is how long the test program of the package in a directory may say nothing.
func quietOf(dir string) time.Duration {
	for _, p := range ofGuests {
		if strings.HasSuffix(dir, strings.TrimPrefix(p, ".")) {
			return longestOfGuests
		}
	}
	return longestQuiet
}

// hangMark begins the line that says so. The report takes it for a reason why a test failed.
const hangMark = "fatal error: the test program hangs: "

// watched passes on what a test program says, and knows when it did.
type watched struct {
	to    io.Writer
	spoke chan struct{} // holds one token when something was said
}

// Write passes it on.
func (w *watched) Write(b []byte) (int, error) {
	select {
	case w.spoke <- struct{}{}:
	default:
	}
	return w.to.Write(b)
}

// watch asks a test program that says nothing for so long for its goroutines, which ends it, until over is closed.
func (w *watched) watch(p *os.Process, quiet time.Duration, over <-chan struct{}) {
	late := time.NewTimer(quiet)
	defer late.Stop()
	for {
		select {
		case <-over:
			return
		case <-w.spoke:
			late.Reset(quiet)
		case <-late.C:
			// It begins a line of its own: a test may have been interrupted within one.
			fmt.Fprintf(w.to, "\n%sit has said nothing for %s; its goroutines follow\n", hangMark, quiet)
			_ = p.Signal(syscall.SIGQUIT) // where it has ended meanwhile, there is nothing to ask
			select {
			case <-over:
			case <-time.After(tellTime):
				_ = p.Kill()
			}
			return
		}
	}
}
