package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"heddle/internal/lab/netns"
)

// process is a program that runs in a namespace of the lab and may outlive the one that started it.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when it has ended
}

// AgentNice is the priority of agents, the same as in the package's unit: guests that keep all CPUs busy must not delay
// the agent's reaction to an operator or a failed link.
const AgentNice = -10

// start runs a program in a namespace, in a session of its own: neither the terminal's Ctrl-C nor its closing
// reaches it. Its output goes to log. nice is its priority.
func (l *Lab) start(ns *netns.NS, log string, nice int, program string,
	args ...string) (*process, error) {
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		return nil, err
	}
	f, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := &process{cmd: exec.Command(program, args...), log: log, done: make(chan struct{})}
	// What a killed process leaves in its temporary directory is removed with the lab.
	temporary := filepath.Join(l.Dir, "tmp")
	if err := os.MkdirAll(temporary, 0o700); err != nil {
		return nil, err
	}
	p.cmd.Env = append(append(os.Environ(), l.opts.Env...), "TMPDIR="+temporary)
	p.cmd.Stdout, p.cmd.Stderr = f, f
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := ns.Do(func() error { return startNice(p.cmd, nice) }); err != nil {
		return nil, fmt.Errorf("start %s: %w", strings.Join(p.cmd.Args, " "), err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in ProcessState
		close(p.done)
	}()
	return p, nil
}

// startNice starts a command with a priority, even if the kernel divides CPU time by session (sched(7), autogroup). The
// calling goroutine is locked to its thread, from which the command inherits the priority; afterwards the thread has
// its own priority back.
func startNice(cmd *exec.Cmd, nice int) error {
	if nice == 0 {
		return cmd.Start()
	}
	own, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err == nil {
		err = unix.Setpriority(unix.PRIO_PROCESS, 0, nice)
	}
	if err != nil {
		return fmt.Errorf("give it priority: %w", err)
	}
	const zero = 20 // what the system call returns for a nice value of 0; it decreases as the nice value increases
	err = errors.Join(cmd.Start(), unix.Setpriority(unix.PRIO_PROCESS, 0, zero-own))
	if err != nil {
		return err
	}
	err = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", cmd.Process.Pid), []byte(strconv.Itoa(nice)), 0)
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("give its session priority: %w", err)
	}
	return nil
}

// ended explains the end of a process that should run: its status and the last lines of its log.
func (p *process) ended() error {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return fmt.Errorf("%s ended: %s", strings.Join(p.cmd.Args, " "), p.cmd.ProcessState)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	last := lines[max(0, len(lines)-5):]
	return fmt.Errorf("%s ended: %s:\n%s", strings.Join(p.cmd.Args[1:], " "), p.cmd.ProcessState,
		strings.Join(last, "\n"))
}

func (p *process) hasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
