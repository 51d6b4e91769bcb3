// Command runtests runs `go test -json` with its arguments and shows what a person wants to know: a line per package
// with its time and CPU time, the whole output of what failed, the reasons for what was skipped, where the CPU time
// went, once more and in short what failed and why, and as its last line "N passed, N failed, N skipped". It exits with
// 1 when anything failed or nothing was run.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == measureVerb {
		dir, err := os.Getwd() // that of the package
		if err != nil {
			fmt.Fprintln(os.Stderr, "runtests:", err)
			os.Exit(1)
		}
		os.Exit(measure(os.Args[2:], quietOf(dir)))
	}
	r := newReport(os.Stdout)
	if err := run(r, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "runtests:", err)
		r.close()
		os.Exit(1)
	}
	if !r.close() {
		os.Exit(1)
	}
}

// run feeds the report with what go test says. That go test exits with 1 is no error: the report has the failures; it
// is one when the report has none.
func run(r *report, args []string) error {
	// An interrupt from the terminal reaches go test and its tests too: they clean up, and this program reads on until
	// they have ended. (Caught and not ignored: what is ignored would stay so in the children.)
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command("go", goTest(self, runtime.NumCPU(), args)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start go test: %w", err)
	}
	readErr := read(out, r)
	err = cmd.Wait()
	r.used = spent(cmd.ProcessState)
	var exit *exec.ExitError
	if errors.As(err, &exit) && r.failed() > 0 {
		err = nil
	}
	return errors.Join(readErr, err)
}

// read passes every line of a `go test -json` stream to the report. A line that is no event is shown as it is.
func read(in io.Reader, r *report) error {
	br := bufio.NewReader(in)
	for {
		line, err := br.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil && e.Action != "" {
				r.add(e)
			} else {
				r.print(string(line))
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read what go test says: %w", err)
		}
	}
}
