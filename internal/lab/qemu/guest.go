package qemu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"heddle/internal/host/qmp"
)

// connectTimeout is how long QEMU may take to open its sockets; it does so before it runs the guest.
const connectTimeout = time.Minute

// Guest is a running guest. Its methods may be called from several goroutines.
type Guest struct {
	name string
	proc *process
	run  *channel
	qmp  *qmp.Client
	stop sync.Once
}

// Start starts a guest and returns when QEMU runs; Ready waits until the guest has booted. The guest is killed when ctx
// ends, and by the kernel if this process dies. What Start made (the tap unless it existed, a private directory) is
// removed when the guest ends.
func Start(ctx context.Context, o Options) (*Guest, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	g, err := o.start(ctx)
	if err != nil {
		return nil, fmt.Errorf("guest %s: %w", o.Name, err)
	}
	return g, nil
}

// start does the work of Start for options that have been checked.
func (o Options) start(ctx context.Context) (_ *Guest, err error) {
	path, err := binary()
	if err != nil {
		return nil, err
	}
	img, err := o.image(ctx)
	if err != nil {
		return nil, err
	}
	var undo cleanup
	defer func() {
		if err != nil {
			err = errors.Join(err, undo.run())
		}
	}()
	dir, err := privateDir()
	if err != nil {
		return nil, err
	}
	undo.add(func() error { return os.RemoveAll(dir) })
	initrd, err := o.initrd(img, dir)
	if err != nil {
		return nil, err
	}
	created, err := ensureTap(o.NetNS, o.Tap, o.Queues, o.MTU)
	if err != nil {
		return nil, err
	}
	if created {
		undo.add(func() error { return DeleteTap(o.NetNS, o.Tap) })
	}
	s := sockets{qmp: filepath.Join(dir, "qmp"), run: filepath.Join(dir, "run")}
	args, err := o.args(img, initrd, s)
	if err != nil {
		return nil, err
	}
	return o.launch(ctx, path, args, s, &undo)
}

// launch starts QEMU and accepts its connections. Once the process runs, it owns undo.
func (o Options) launch(ctx context.Context, path string, args []string, s sockets, undo *cleanup) (*Guest, error) {
	qmpListener, err := net.Listen("unix", s.qmp)
	if err != nil {
		return nil, err
	}
	defer qmpListener.Close()
	runListener, err := net.Listen("unix", s.run)
	if err != nil {
		return nil, err
	}
	defer runListener.Close()
	proc, err := startProcess(ctx, o.NetNS, path, args, o.Console, undo.take())
	if err != nil {
		return nil, err
	}
	g := &Guest{name: o.Name, proc: proc}
	if err := g.connect(ctx, runListener, qmpListener, o); err != nil {
		proc.kill()
		<-proc.done
		return nil, proc.explain(err)
	}
	return g, nil
}

// connect waits for QEMU's connections.
func (g *Guest) connect(ctx context.Context, run, control net.Listener, o Options) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := g.proc.accept(ctx, run)
	if err != nil {
		return err
	}
	g.run = newChannel(conn, o.Incoming != "")
	conn, err = g.proc.accept(ctx, control)
	if err != nil {
		return err
	}
	g.qmp, err = qmp.New(ctx, conn, o.OnEvent)
	return err
}

// Ready waits until the guest has booted, its network card has link and addresses, and it serves commands. The error
// contains what the guest reported, or the end of its kernel's output.
func (g *Guest) Ready(ctx context.Context) error {
	select {
	case <-g.run.ready:
		if err := g.run.reason(); err != nil {
			return fmt.Errorf("guest %s: %w", g.name, g.proc.explain(err))
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("guest %s: not ready: %w", g.name, g.proc.explain(ctx.Err()))
	}
}

// Run waits until the guest is ready and runs a shell command in it. A command that fails is no error: see
// Result.ExitCode. When ctx ends, the command is killed.
func (g *Guest) Run(ctx context.Context, command string) (Result, error) {
	if err := g.Ready(ctx); err != nil {
		return Result{}, err
	}
	r, err := g.run.run(ctx, command)
	if err != nil && g.run.reason() != nil {
		g.proc.finish(ctx)
		err = g.proc.explain(err) // the guest is gone: its last output says why
	}
	if err != nil {
		return Result{}, fmt.Errorf("guest %s: %w", g.name, err)
	}
	return r, nil
}

// QMP runs a command of QEMU's machine protocol, for instance "query-rx-filter", and returns its result. args is
// anything that marshals to the JSON object of arguments, or nil.
func (g *Guest) QMP(ctx context.Context, command string, args any) (json.RawMessage, error) {
	out, err := g.qmp.Execute(ctx, command, args)
	if err != nil {
		return nil, fmt.Errorf("guest %s: %w", g.name, err)
	}
	return out, nil
}

// Pid is the process id of QEMU.
func (g *Guest) Pid() int { return g.proc.cmd.Process.Pid }

// Name is the name the guest was started with.
func (g *Guest) Name() string { return g.name }

// Release is the kernel's version ("uname -r") once the guest is ready.
func (g *Guest) Release() string {
	g.run.mu.Lock()
	defer g.run.mu.Unlock()
	return g.run.release
}

// Done is closed when the guest has ended and everything that Start made is removed.
func (g *Guest) Done() <-chan struct{} { return g.proc.done }

// Said is the end of what QEMU and the guest's kernel have printed, or nothing.
func (g *Guest) Said() string { return g.proc.said() }

// Wait waits for the guest to end. The error is nil when QEMU ended by itself or by Stop and everything could be
// cleaned up.
func (g *Guest) Wait() error {
	<-g.proc.done
	if g.proc.err != nil {
		return fmt.Errorf("guest %s: %w", g.name, g.proc.err)
	}
	return nil
}

// Stop ends the guest like pulling the plug: QEMU is asked to quit, and killed if it has not within 3 s. It waits for
// the end, and may be called again.
func (g *Guest) Stop() error {
	g.stop.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		// The answer may be lost when the connection closes: only the end of the process counts.
		_, _ = g.qmp.Execute(ctx, "quit", nil)
		select {
		case <-g.proc.done:
		case <-ctx.Done():
			g.proc.kill()
		}
	})
	return g.Wait()
}

// privateDir makes a directory that only this user can enter, short enough for the names of unix sockets (108 bytes).
func privateDir() (string, error) {
	parent := os.TempDir()
	if len(parent) > 60 {
		parent = "/tmp"
	}
	return os.MkdirTemp(parent, "heddle-guest-")
}

// cleanup is a list of things to undo, last first.
type cleanup struct{ steps []func() error }

func (c *cleanup) add(f func() error) { c.steps = append(c.steps, f) }

// take moves the steps to another owner.
func (c *cleanup) take() *cleanup {
	taken := &cleanup{steps: c.steps}
	c.steps = nil
	return taken
}

func (c *cleanup) run() error {
	var errs []error
	for i := len(c.steps) - 1; i >= 0; i-- {
		errs = append(errs, c.steps[i]())
	}
	c.steps = nil
	return errors.Join(errs...)
}
