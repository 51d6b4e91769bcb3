package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// measureVerb is the argument by which this program runs a test program and says afterwards what it used.
const measureVerb = "measure"

// usedMark begins the line that says so.
const usedMark = "runtests: CPU time "

// leftTime is how long the output of a test program that has ended is still read.
const leftTime = 30 * time.Second

// measure runs a test program and gives its exit status. Its last line is the CPU time of the program and of what it
// started and waited for, such as agents and guests. One that says nothing for as long as quiet shows its goroutines
// and ends.
func measure(args []string, quiet time.Duration) int {
	cmd := exec.Command(args[0], args[1:]...)
	said := &watched{to: os.Stdout, spoke: make(chan struct{}, 1)}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, said, said
	// What the test program has left behind may hold its output open.
	cmd.WaitDelay = leftTime
	// The go command sends a late test program a signal for its stacks, and kills this program if that does not help.
	// The test program then gets Pdeathsig, which is tied to the thread that started it.
	runtime.LockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGQUIT, syscall.SIGTERM, os.Interrupt)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "runtests:", err)
		return 1
	}
	go func() {
		for s := range asked {
			if s != os.Interrupt { // which the terminal gives to both
				_ = cmd.Process.Signal(s)
			}
		}
	}()
	over := make(chan struct{})
	go said.watch(cmd.Process, quiet, over)
	err := cmd.Wait()
	close(over)
	fmt.Printf("%s%s\n", usedMark, spent(cmd.ProcessState))
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && !exit.Exited():
		fmt.Fprintln(os.Stderr, exit)
		return 2
	case err != nil && exit == nil:
		fmt.Fprintln(os.Stderr, "runtests:", err)
		return 1
	}
	return cmd.ProcessState.ExitCode()
}

// spent is the CPU time of a process that ended, with its children.
func spent(p *os.ProcessState) time.Duration { return p.UserTime() + p.SystemTime() }

// usedIn returns the CPU time that a line of output tells.
func usedIn(line string) (time.Duration, bool) {
	text, ok := strings.CutPrefix(line, usedMark)
	if !ok {
		return 0, false
	}
	d, err := time.ParseDuration(strings.TrimSpace(text))
	return d, err == nil
}
