package packaging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/test/testkit"
)

// machine is a throw-away machine with systemd as its first process. Its root is this machine's under a layer of its
// own.
type machine struct {
	t       *testing.T
	pid     string // of systemd, seen from here
	console *collected
}

// collected is output that may be read while it grows.
type collected struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (c *collected) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.b.Write(p)
}

func (c *collected) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.b.String()
}

// terminal opens a pseudo terminal and returns the path of its far end; what is written there is collected.
func terminal(t *testing.T) (path string, out *collected) {
	t.Helper()
	near, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(near.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(near.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	path = fmt.Sprintf("/dev/pts/%d", n)
	far, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY, 0) // kept open, so that the near end never sees an end
	if err != nil {
		t.Fatal(err)
	}
	out = &collected{}
	done := make(chan struct{})
	go func() { defer close(done); _, _ = io.Copy(out, near) }()
	t.Cleanup(func() { far.Close(); near.Close(); <-done })
	return path, out
}

// boot starts the machine with the packages at hand in /run/packages, and waits until its target is reached.
func boot(t *testing.T, packages string) *machine {
	t.Helper()
	testkit.Root(t)
	testkit.Tool(t, "unshare", "nsenter", "dpkg", "ip", "systemctl")
	if _, err := os.Stat("/lib/systemd/systemd"); err != nil {
		testkit.Missing(t, "program /lib/systemd/systemd")
	}
	script, err := filepath.Abs("testdata/boot")
	if err != nil {
		t.Fatal(err)
	}
	console, out := terminal(t)
	cmd := exec.Command("unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--fork",
		"--kill-child=KILL", script)
	cmd.Env = append(os.Environ(), "SCRATCH="+t.TempDir(), "CONSOLE="+console, "PACKAGES="+packages)
	var said collected
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, console: out}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // systemd goes with it, and everything below goes with systemd
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("said while booting: %s\nconsole: %s", said.String(), out.String())
		}
	})
	m.await("systemd is up", func() bool {
		m.pid = firstChild(cmd.Process.Pid)
		state, _ := m.try("systemctl", "is-active", "multi-user.target")
		return m.pid != "" && strings.TrimSpace(state) == "active"
	})
	return m
}

func firstChild(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	return first
}

// try runs a command on the machine.
func (m *machine) try(name string, args ...string) (string, error) {
	if m.pid == "" {
		return "", errors.New("not up")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--target", m.pid, "--mount", "--pid", "--net", "--uts",
		"--ipc", "--cgroup", "--root", "--wd", name}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"}
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (m *machine) must(name string, args ...string) string {
	m.t.Helper()
	out, err := m.try(name, args...)
	if err != nil {
		log, _ := m.try("cat", "/run/heddle.log")
		status, _ := m.try("systemctl", "status", "--no-pager", "heddle.service", "run-heddle-bpf.mount")
		m.t.Fatalf("%s %s: %v\n%s\nagent's log:\n%s\n%s", name, strings.Join(args, " "), err, out, log, status)
	}
	return out
}

// sh runs lines of shell that all have to succeed.
func (m *machine) sh(lines string) string {
	m.t.Helper()
	return m.must("sh", "-ec", lines)
}

func (m *machine) await(what string, ok func() bool) {
	m.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			log, _ := m.try("cat", "/run/heddle.log")
			status, _ := m.try("systemctl", "status", "--no-pager", "heddle.service", "run-heddle-bpf.mount")
			m.t.Fatalf("%s: not within 30 s\n%s\n%s", what, log, status)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// property is a property of the agent's unit.
func (m *machine) property(name string) string {
	m.t.Helper()
	return strings.TrimSpace(m.must("systemctl", "show", "--value", "--property="+name, "heddle.service"))
}

func (m *machine) agentPID() int {
	m.t.Helper()
	n, err := strconv.Atoi(m.property("MainPID"))
	if err != nil {
		m.t.Fatal(err)
	}
	return n
}
