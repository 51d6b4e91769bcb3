package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// measureVerb is the argument by which this program runs a test program and says afterwards what it used.
const measureVerb = "measure"

// usedMark begins the line that says so.
const usedMark = "runtests: CPU time "

// abruptMark is the line that says that a test program ended before its tests had: by a panic, a signal, os.Exit. Some
// of them may not have run.
const abruptMark = "runtests: the test program ended before its tests had"

// leftTime is how long the output of a test program that has ended is still read, and how long what it left may take
// to end by itself.
const leftTime = 10 * time.Second

// measureAlone runs a test program, and leaves nothing behind that it started: processes, also those that have lost
// their parent, and names of network namespaces.
func measureAlone(args []string) int {
	dir, err := os.Getwd() // that of the package
	if err == nil {
		// What loses its parent becomes a child of this process.
		err = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "runtests:", err)
		return 1
	}
	before := namesIn(namesDir)
	status, pid := measure(args, quietOf(dir))
	if left := sweep(leftTime); len(left) > 0 {
		fmt.Printf("runtests: the test program left processes behind, which were killed: %s\n",
			strings.Join(left, ", "))
		status = max(status, 1)
	}
	if left := unname(namesDir, pid, before); len(left) > 0 {
		fmt.Printf("runtests: the test program left network namespaces behind, which were removed: %s\n",
			strings.Join(left, ", "))
		status = max(status, 1)
	}
	return status
}

// namesDir has the names of network namespaces.
const namesDir = "/run/netns"

// namesIn are the names of network namespaces; none where there is no such directory.
func namesIn(dir string) (names []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// unname removes the named network namespaces that a test program left, and names them. Their names have its process
// number in them (testkit.NS, and the labs), and were not there before it: an earlier process may have had the number.
func unname(dir string, pid int, before []string) []string {
	mine := regexp.MustCompile(fmt.Sprintf(`^[a-z]+(%d|%d)(\D|$)`, pid, pid%100000))
	var names []string
	for _, name := range namesIn(dir) {
		if !mine.MatchString(name) || slices.Contains(before, name) {
			continue
		}
		path := filepath.Join(dir, name)
		_ = unix.Unmount(path, unix.MNT_DETACH) // where it is no mount, removing says what is wrong
		if err := os.Remove(path); err == nil {
			names = append(names, name)
		}
	}
	return names
}

// measure runs a test program and gives its exit status and process number. It says at the end what CPU time the
// program used, with what it started and waited for, such as agents and guests, and whether it ended before its tests
// had. One that says nothing for as long as quiet shows its goroutines and ends.
func measure(args []string, quiet time.Duration) (status, pid int) {
	cmd := exec.Command(args[0], args[1:]...)
	said := &watched{to: os.Stdout, spoke: make(chan struct{}, 1)}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, said, said
	// What the test program has left behind may hold its output open.
	cmd.WaitDelay = leftTime
	runtime.LockOSThread() // Pdeathsig is tied to the thread that starts it
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGQUIT, syscall.SIGTERM, os.Interrupt)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "runtests:", err)
		return 1, 0
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
	if status := cmd.ProcessState.ExitCode(); status != 0 && status != 1 {
		fmt.Println(abruptMark)
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && !exit.Exited():
		fmt.Fprintln(os.Stderr, exit)
		return 2, cmd.Process.Pid
	case err != nil && exit == nil:
		fmt.Fprintln(os.Stderr, "runtests:", err)
		return 1, cmd.Process.Pid
	}
	return cmd.ProcessState.ExitCode(), cmd.Process.Pid
}

// sweep waits until this process has no children any more, kills those that are still there after patience, and names
// them.
func sweep(patience time.Duration) []string {
	var names []string
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if errors.Is(err, unix.ECHILD) {
				return names
			}
			if err != nil || pid == 0 {
				break
			}
		}
		if time.Now().Before(deadline) {
			continue
		}
		for pid, name := range children() {
			if unix.Kill(pid, unix.SIGKILL) == nil && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
}

// children are the processes whose parent is this one, with their names. Killed, they hand it theirs.
func children() map[int]string {
	found := map[int]string{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// proc_pid_stat(5): the name stands in parentheses and may hold some; the parent is the second field after it.
		end := strings.LastIndexByte(string(text), ')')
		if end < 0 {
			continue
		}
		head, tail := string(text[:end]), string(text[end+1:])
		pid, name, _ := strings.Cut(head, " (")
		fields := strings.Fields(tail)
		n, err := strconv.Atoi(pid)
		if err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			found[n] = name
		}
	}
	return found
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
