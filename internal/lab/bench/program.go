package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"heddle/internal/lab/netns"
)

// stopPatience is how long a daemon may take to end before it is killed.
const stopPatience = 3 * time.Second

// machine is a namespace in which programs run, and what is added to their environment.
type machine struct {
	ns  *netns.NS
	env []string
}

// command prepares a program in a process group of its own, so that Ctrl-C reaches only us and we end it.
func (m machine) command(ctx context.Context, name string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), m.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = stopPatience
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

// run runs a program to its end.
func (m machine) run(ctx context.Context, name string, args ...string) error {
	cmd, out := m.command(ctx, name, args...)
	err := m.ns.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(out.String()))
	}
	return nil
}

// daemon is a program that runs until it is stopped.
type daemon struct {
	name string
	out  *bytes.Buffer // what it printed; read it after the daemon has ended
	stop context.CancelFunc
	done chan struct{}
	err  error // valid after done
}

// start starts a daemon. The caller must stop it.
func (m machine) start(name string, args ...string) (*daemon, error) {
	ctx, stop := context.WithCancel(context.Background())
	cmd, out := m.command(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := m.ns.Start(cmd); err != nil {
		stop()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	d := &daemon{name: name, out: out, stop: stop, done: make(chan struct{})}
	go func() {
		d.err = cmd.Wait()
		close(d.done)
	}()
	return d, nil
}

// failed is an error when the daemon has ended already.
func (d *daemon) failed() error {
	select {
	case <-d.done:
		return fmt.Errorf("%s ended early (%v): %s", d.name, d.err, strings.TrimSpace(d.out.String()))
	default:
		return nil
	}
}

// end stops the daemon and waits for it. It is no error that our signal ended it.
func (d *daemon) end() error {
	early := d.failed()
	d.stop()
	<-d.done
	var exit *exec.ExitError
	if early == nil && d.err != nil && !errors.As(d.err, &exit) && !errors.Is(d.err, context.Canceled) {
		return fmt.Errorf("stop %s: %w: %s", d.name, d.err, strings.TrimSpace(d.out.String()))
	}
	return early
}
