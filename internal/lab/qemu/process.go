package qemu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"heddle/internal/lab/netns"
)

// process is QEMU as a child of this process.
type process struct {
	cmd     *exec.Cmd
	console *tail
	stderr  *tail
	// done is closed when the process has ended and undo has run; err is set before.
	done chan struct{}
	err  error
}

// startProcess starts QEMU in the namespace and watches it to its end, then undoes what undo has (also when starting
// fails).
//
// The parent-death signal follows the thread that started the child, not the process. So one thread starts the child,
// stays locked in the namespace, and waits for the child's end.
func startProcess(ctx context.Context, ns *netns.NS, path string, args []string, console io.Writer,
	undo *cleanup) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, path, args...), console: &tail{to: console}, stderr: &tail{},
		done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.console, p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	p.cmd.WaitDelay = 2 * time.Second
	started := make(chan error, 2) // the result of Start, and of the process: sending neither may block
	go func() {
		defer close(p.done)
		var ended error
		err := inNS(ns, func() error {
			if err := p.cmd.Start(); err != nil {
				return fmt.Errorf("start QEMU: %w", err)
			}
			started <- nil
			ended = p.cmd.Wait()
			return nil
		})
		if ctx.Err() != nil {
			ended = nil // it was killed on request
		}
		if ended != nil {
			ended = fmt.Errorf("QEMU ended: %w%s", ended, p.stderr.quote("QEMU"))
		}
		p.err = errors.Join(err, ended, undo.run())
		started <- err
	}()
	if err := <-started; err != nil {
		<-p.done
		return nil, err
	}
	return p, nil
}

// kill ends QEMU at once.
func (p *process) kill() { _ = p.cmd.Process.Kill() }

// accept takes one connection, giving up when the process ends or ctx does.
func (p *process) accept(ctx context.Context, l net.Listener) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	got := make(chan result, 1)
	go func() {
		conn, err := l.Accept()
		got <- result{conn, err}
	}()
	var err error
	select {
	case r := <-got:
		return r.conn, r.err
	case <-p.done:
		err = errors.New("QEMU ended at once")
	case <-ctx.Done():
		err = fmt.Errorf("QEMU did not open its sockets: %w", ctx.Err())
	}
	l.Close()
	if r := <-got; r.conn != nil {
		r.conn.Close()
	}
	return nil, err
}

// lastWords is how long a QEMU whose guest has ended may take to hand over what it still has of the guest's console.
const lastWords = 10 * time.Second

// finish waits for the end of a process whose guest has ended, until which its outputs are not complete.
func (p *process) finish(ctx context.Context) {
	soon := time.NewTimer(lastWords)
	defer soon.Stop()
	select {
	case <-p.done:
	case <-soon.C:
	case <-ctx.Done():
	}
}

// explain adds the end of what QEMU and the guest's kernel printed.
func (p *process) explain(err error) error {
	return fmt.Errorf("%w%s", err, p.said())
}

// said is the end of what QEMU and the guest's kernel printed, as the end of a sentence, or nothing.
func (p *process) said() string {
	return p.stderr.quote("QEMU") + p.console.quote("the guest's console")
}

// tailBytes is how much of an output is stored for error messages: enough for a kernel panic with its backtrace.
const tailBytes = 6000

// tail passes on what is written to it and stores the end.
type tail struct {
	to io.Writer // may be nil

	mu   sync.Mutex
	last []byte
}

// Write implements io.Writer. An error of the writer behind it does not stop the guest.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	t.last = append(t.last, p...)
	if extra := len(t.last) - tailBytes; extra > 0 {
		t.last = append(t.last[:0], t.last[extra:]...)
	}
	t.mu.Unlock()
	if t.to != nil {
		_, _ = t.to.Write(p)
	}
	return len(p), nil
}

// quote returns the stored output as the end of an error message, or nothing.
func (t *tail) quote(who string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(strings.ReplaceAll(string(t.last), "\r", ""))
	if text == "" {
		return ""
	}
	return fmt.Sprintf("; %s said:\n%s", who, text)
}
