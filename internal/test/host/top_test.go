package host

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/cli/top"
	"heddle/internal/test/testkit/pty"
)

// onTerminal runs a program of the host on a terminal of its own, as its session's first process.
func (h *host) onTerminal(p *pty.Terminal, cmd *exec.Cmd) (ended <-chan error) {
	h.t.Helper()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Program, p.Program, p.Program
	cmd.Env = append(h.command().Env, "TERM=xterm", "PS1=ready> ")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := h.ns.Start(cmd); err != nil {
		h.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	h.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return done
}

func shown(screen string) bool {
	return strings.Contains(screen, "heddle top") && strings.Contains(screen, "LAST DROP") &&
		strings.Contains(screen, "vm1")
}

func TestTopShowsLivePortsAndGivesTheTerminalBackAtSignals(t *testing.T) {
	h := monitored(t)
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		p := pty.Open(t, 120, 20)
		was := p.Settings()
		cmd := exec.Command("heddle", "top", "--interval", "100ms", "--sort", "drops")
		ended := h.onTerminal(p, cmd)
		p.Await("rates, and the reason of the last drop", func(s string) bool {
			return shown(s) && strings.Contains(s, "in forged-transmit")
		})
		p.Type("/vm2\r")
		p.Await("the filter", func(s string) bool {
			return strings.Contains(s, "only vm2") &&
				!strings.Contains(s, "\nvm1 ")
		})
		p.Resize(80, 10)
		p.Type("\x0c")
		p.Await("the smaller window", func(s string) bool {
			return strings.Contains(s, "heddle top") &&
				strings.Contains(s, "\nvm2 ")
		})
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("after %v: %v", sig, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("it goes on after %v", sig)
		}
		p.Await("the screen is given back", func(string) bool { return !p.Own() && !p.Hidden() })
		if now := p.Settings(); now != was {
			t.Errorf("after %v the terminal is not as it was: %+v, was %+v", sig, now, was)
		}
	}
}

func TestTopStopsAndGoesOnAsAShellWants(t *testing.T) {
	h := monitored(t)
	p := pty.Open(t, 120, 20)
	shell := exec.Command("bash", "--norc", "--noprofile", "-i")
	h.onTerminal(p, shell)
	prompt := func(s string) bool { return strings.HasSuffix(strings.TrimRight(s, "\n "), "ready>") }
	p.Await("a prompt", prompt)
	for _, how := range []string{"\x1a", "kill"} {
		p.Type("heddle top --interval 100ms\r")
		p.Await("the ports", func(s string) bool { return shown(s) && p.Own() })
		if how == "kill" {
			stopChild(t, shell.Process.Pid)
		} else {
			p.Type(how)
		}
		p.Await("it is stopped, and the screen is the shell's", func(s string) bool {
			return !p.Own() && !p.Hidden() &&
				strings.Contains(s, "Stopped")
		})
		p.Type("stty -a | tr ';' '\\n' | grep -c -e ' icanon' -e ' echo '\r")
		p.Await("lines are edited and shown again", func(s string) bool {
			return strings.Contains(s, "\n2\n") ||
				strings.Contains(s, "\n1\n")
		})
		p.Type("fg\r")
		p.Await("it goes on", func(s string) bool { return shown(s) && p.Own() })
		p.Type("q")
		p.Await("the prompt", func(s string) bool { return !p.Own() && prompt(s) })
		p.Type("clear\r")
	}
	p.Type("exit\r")
}

// stopChild sends SIGTSTP to the one child of a process, as its own number says.
func stopChild(t *testing.T, parent int) {
	t.Helper()
	path := fmt.Sprintf("/proc/%d/task/%d/children", parent, parent)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatalf("%s: %q", path, text)
	}
	if err := syscall.Kill(child, syscall.SIGTSTP); err != nil {
		t.Fatal(err)
	}
}

func TestTopWithoutATerminalPrints(t *testing.T) {
	h := monitored(t)
	out := h.must("top", "--interval", "100ms")
	if strings.Contains(out, "\x1b") || strings.Count(out, "LAST DROP") != 1 || !strings.Contains(out, "vm1") {
		t.Errorf("once:\n%s", out)
	}
	if out = h.must("top", "-b", "-n", "3", "--interval", "100ms"); strings.Count(out, "LAST DROP") != 3 {
		t.Errorf("three times:\n%s", out)
	}
	lines := strings.Split(strings.TrimSpace(h.must("top", "-o", "json", "-n", "2", "--interval", "100ms")), "\n")
	var one struct{ Rows []top.Row }
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &one); err != nil || len(lines) != 2 || len(one.Rows) != 4 ||
		one.Rows[0].Rates == nil {
		t.Errorf("%v: %d lines, %+v", err, len(lines), one)
	}
	h.awaitPort("vm1", api.Up)
}
