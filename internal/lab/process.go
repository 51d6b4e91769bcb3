package lab

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"heddle/internal/netns"
)

// process is a program that runs in a namespace of the lab and may outlive the one that started it.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when it has ended
}

// start runs the heddle program in a namespace, in a session of its own: neither the terminal's Ctrl-C nor its closing
// reaches it. Its output goes to log.
func (l *Lab) start(ns *netns.NS, log string, args ...string) (*process, error) {
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		return nil, err
	}
	f, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := &process{cmd: exec.Command(l.opts.Program, args...), log: log, done: make(chan struct{})}
	// What a process that is killed leaves in its temporary directory goes with the lab.
	temporary := filepath.Join(l.Dir, "tmp")
	if err := os.MkdirAll(temporary, 0o700); err != nil {
		return nil, err
	}
	p.cmd.Env = append(append(os.Environ(), l.opts.Env...), "TMPDIR="+temporary)
	p.cmd.Stdout, p.cmd.Stderr = f, f
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := ns.Start(p.cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", strings.Join(p.cmd.Args, " "), err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in ProcessState
		close(p.done)
	}()
	return p, nil
}

// ended explains the end of a process that should run: its status and the last lines of its log.
func (p *process) ended() error {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return fmt.Errorf("%s ended: %s", strings.Join(p.cmd.Args, " "), p.cmd.ProcessState)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	last := lines[max(0, len(lines)-5):]
	return fmt.Errorf("%s ended: %s:\n%s", strings.Join(p.cmd.Args[1:], " "), p.cmd.ProcessState, strings.Join(last, "\n"))
}

func (p *process) hasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
