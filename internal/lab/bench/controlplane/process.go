package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"heddle/internal/api"
	"heddle/internal/lab/cputime"
	"heddle/internal/lab/netns"
)

// Times of a controller process.
const (
	startPatience = 2 * time.Minute
	endPatience   = 20 * time.Second
	// poll is how often it is asked whether it answers.
	poll = 5 * time.Millisecond
)

// process is a controller, with a directory of its own.
type process struct {
	*api.Fleet
	program []string
	args    []string // more of them
	dir     string
	address string
	ns      *netns.NS // in which it runs; nil for that of this process
	cmd     *exec.Cmd
	ended   chan struct{}
}

// newProcess prepares a controller. It is started with start.
func newProcess(program []string) (*process, error) {
	dir, err := os.MkdirTemp("", "hb-controller-")
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // for a port that nobody has
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	p := &process{program: program, dir: dir, address: l.Addr().String()}
	p.Fleet = api.NewFleet(p.socket())
	return p, l.Close()
}

func (p *process) socket() string { return filepath.Join(p.dir, "run", "api.sock") }

// start starts the controller, and returns after how long it answered with that revision of the definition, 0 for any.
func (p *process) start(ctx context.Context, revision int64) (time.Duration, error) {
	log, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	args := append(append([]string{}, p.program[1:]...), "--data-dir", filepath.Join(p.dir, "data"), "--listen-peers",
		"none", "--listen", p.address, "--advertise", p.address, "--socket", p.socket())
	args = append(args, p.args...)
	cmd := exec.Command(p.program[0], args...)
	cmd.Stdout, cmd.Stderr = log, log
	// In a process group of its own, so that Ctrl-C reaches only us and we end it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	began := time.Now()
	start := cmd.Start
	if p.ns != nil {
		start = func() error { return p.ns.Start(cmd) }
	}
	if err := start(); err != nil {
		return 0, fmt.Errorf("start the controller: %w", err)
	}
	ended := make(chan struct{})
	p.cmd, p.ended = cmd, ended
	go func() {
		_ = cmd.Wait() // that it has ended is what counts
		close(ended)
	}()
	for {
		d, err := p.Definition(ctx)
		if err == nil && d.Revision >= revision {
			return time.Since(began), nil
		}
		if err := p.failed(ctx); err != nil {
			return 0, err
		}
		if time.Since(began) > startPatience {
			return 0, fmt.Errorf("the controller does not answer: %w", err)
		}
		time.Sleep(poll)
	}
}

// failed is an error when the run was ended, or the controller has.
func (p *process) failed(ctx context.Context) error {
	select {
	case <-p.ended:
		text, _ := os.ReadFile(filepath.Join(p.dir, "log")) // what can be said besides
		return fmt.Errorf("the controller has ended: %s", text[max(0, len(text)-2000):])
	default:
		return ctx.Err()
	}
}

// kill ends the controller by a signal and waits for it.
func (p *process) kill(s syscall.Signal) error {
	if p.cmd == nil {
		return nil
	}
	defer func() { p.cmd = nil }()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(endPatience):
	}
	err := p.cmd.Process.Kill()
	<-p.ended
	return errors.Join(fmt.Errorf("the controller did not end within %s of %s", endPatience, s), err)
}

// close ends the controller and removes what it kept.
func (p *process) close() error { return errors.Join(p.kill(syscall.SIGTERM), os.RemoveAll(p.dir)) }

// memory is how much the controller has in memory now, and at most since its start, in bytes.
func (p *process) memory() (now, most float64, err error) {
	m, err := memoryOf(p.cmd.Process.Pid)
	return m.now, m.most, err
}

// written is how much the controller has written to its disk so far, in bytes.
func (p *process) written() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "write_bytes: "); ok {
			return strconv.ParseFloat(strings.TrimSpace(n), 64)
		}
	}
	return 0, fmt.Errorf("/proc/%d/io does not say what was written", p.cmd.Process.Pid)
}

// work is CPU time that was used, in seconds.
type work struct{ controller, agents float64 }

// working is the CPU time of the controller and of this process so far.
func (p *process) working() (w work, err error) {
	c, err := cputime.Process(p.cmd.Process.Pid)
	if err != nil {
		return w, err
	}
	w, err = p.ownWork()
	w.controller = c.Seconds()
	return w, err
}

// ownWork is the CPU time of this process so far, and that of a controller which has not begun.
func (p *process) ownWork() (work, error) {
	a, err := cputime.Process(os.Getpid())
	return work{agents: a.Seconds()}, err
}

// since is what was used after that time.
func (w work) since(before work) work {
	return work{w.controller - before.controller, w.agents - before.agents}
}
