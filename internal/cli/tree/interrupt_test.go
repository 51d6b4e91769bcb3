package tree

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/cli"
)

// waiting is a reader that never has data, and closes begun when somebody reads from it.
type waiting struct{ begun chan struct{} }

func (w waiting) Read([]byte) (int, error) {
	w.begun <- struct{}{}
	select {}
}

// Ctrl-C and SIGTERM end the context of a command. A command that reads standard input, or a pipe to which nobody
// writes, then ends.
func TestCommandsThatReadCanBeInterrupted(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe.yaml")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"check", "-f", "-"}, {"apply", "-f", "-"}, {"trace", "--from", "vm1/eth0", "--hex", "-"},
		{"trace", "--from", "vm1/eth0", "--pcap", "-"},
		{"libvirt-hook", "vm1", "prepare", "begin", "-"},
		{"check", "-f", pipe}, {"apply", "-f", pipe}, {"trace", "--from", "vm1/eth0", "--pcap", pipe},
		{"agent", "--name", "t", "--config", pipe}, {"lab", "up", pipe},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		in := waiting{make(chan struct{}, 1)}
		if args[len(args)-1] == pipe {
			in.begun <- struct{}{}
			// A process that opens the pipe waits in the kernel, where a test cannot see it: the context ends before or
			// meanwhile.
			time.AfterFunc(20*time.Millisecond, cancel)
		} else {
			go func() { <-in.begun; cancel() }()
		}
		var out, errs bytes.Buffer
		env := map[string]string{"HEDDLE_RUN_DIR": t.TempDir(), "HEDDLE_STATE_DIR": t.TempDir()}
		ended := make(chan int, 1)
		go func() {
			ended <- Run(ctx, cli.Deps{Stdin: in, Stdout: &out, Stderr: &errs, Getenv: func(k string) string {
				return env[k]
			}}, args)
		}()
		select {
		case status := <-ended:
			if status != cli.ExitFailure || !strings.Contains(errs.String(), "interrupted") &&
				!strings.Contains(errs.String(), "context canceled") {
				t.Errorf("%v: status %d: %s", args, status, &errs)
			}
		case <-time.After(time.Minute):
			t.Errorf("%v goes on", args)
		}
		cancel()
	}
}

var _ io.Reader = waiting{}
