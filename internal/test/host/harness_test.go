package host

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"heddle/cmd/heddle/features"
	"heddle/internal/api"
	"heddle/internal/cli/tree"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/leaks"
)

// TestMain puts this very program into the path of the tests as "heddle".
func TestMain(m *testing.M) {
	testscript.Main(tidy{m}, map[string]func(){"heddle": program, "heddle-cni": program})
}

// program is what `heddle` is in tests.
func program() { os.Exit(tree.Main("", features.All()...)) }

// tidy removes what tests of the process share when all are over.
type tidy struct{ *testing.M }

func (t tidy) Run() int {
	defer func() { _ = os.RemoveAll(grownDir()) }()
	return t.M.Run()
}

// host is a hypervisor: a namespace with an agent of its own.
type host struct {
	t     *testing.T
	ns    *netns.NS
	dir   string
	name  string
	agent *exec.Cmd
	log   *logBuffer
	done  chan error
	made  *leaks.Objects
	// binary is the program the agent runs; "" is the one under test.
	binary string
	// env is what commands and the agent have in their environment besides that of the test.
	env []string
}

// logBuffer collects what the agent logs, for failing tests and to await events.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newHost makes the namespace; everything in it goes with the test.
func newHost(t *testing.T) *host {
	t.Helper()
	testkit.Root(t)
	testkit.Tool(t, "ip", "ping")
	testkit.Beside(t)
	h := &host{t: t, ns: testkit.NS(t, "host"), dir: shortDir(t), log: &logBuffer{}, made: leaks.Watch(t)}
	testkit.Weigh(t, 1)
	h.name = "t" + strings.ReplaceAll(h.ns.Name, "_", "-")
	t.Cleanup(func() {
		if h.agent != nil {
			h.accounts()
			h.kill(syscall.SIGKILL)
		}
		h.made.Pins(t, filepath.Join(h.dir, "run", "bpf"))
		h.must("down", "--purge")
		if t.Failed() {
			t.Logf("agent's log:\n%s", h.log)
		}
	})
	return h
}

// shortDir is a directory that goes with the test. t.TempDir's has the test's name in it, and the path of a socket has
// at most 107 bytes (unix(7)).
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "heddle-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// accounts checks the counters against the accounting invariant (S94). An agent that a test has left hanging, or of
// another version, is not asked again.
func (h *host) accounts() {
	h.t.Helper()
	if out, errs, status := h.heddle("stats", "--check"); status != 0 && strings.Contains(errs, "do not add up") {
		h.t.Errorf("at the end of the test:\n%s%s", out, errs)
	}
}

func (h *host) command(args ...string) *exec.Cmd {
	cmd := exec.Command("heddle", args...)
	cmd.Env = append(os.Environ(), "HEDDLE_AGENT="+h.name, "HEDDLE_RUN_DIR="+filepath.Join(h.dir, "run"),
		"HEDDLE_STATE_DIR="+filepath.Join(h.dir, "state"))
	cmd.Env = append(cmd.Env, h.env...)
	return cmd
}

// heddle runs a command on the host and returns its output and exit status.
func (h *host) heddle(args ...string) (stdout, stderr string, status int) {
	h.t.Helper()
	cmd := h.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := h.ns.Start(cmd); err != nil {
		h.t.Fatal(err)
	}
	_ = cmd.Wait()
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// must runs a command that has to succeed.
func (h *host) must(args ...string) string {
	h.t.Helper()
	out, errs, status := h.heddle(args...)
	if status != 0 {
		h.t.Fatalf("heddle %s: status %d\n%s%s", strings.Join(args, " "), status, out, errs)
	}
	return out
}

func (h *host) file(name, content string) string {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// start runs the agent and waits until it answers.
func (h *host) start(args ...string) {
	h.t.Helper()
	cmd := h.command(append([]string{"agent"}, args...)...)
	if h.binary != "" {
		cmd.Path, cmd.Err = h.binary, nil
	}
	cmd.Stdout, cmd.Stderr = h.log, h.log
	if err := h.ns.Start(cmd); err != nil {
		h.t.Fatal(err)
	}
	h.agent, h.done = cmd, make(chan error, 1)
	go func() { h.done <- cmd.Wait() }()
	h.await("agent answers", func() bool {
		select {
		case err := <-h.done:
			h.t.Fatalf("agent ended: %v\n%s", err, h.log)
		default:
		}
		_, _, status := h.heddle("switch", "list")
		return status == 0
	})
	h.made.Process(h.t, cmd.Process.Pid)
}

// kill ends the agent by a signal and waits for its end.
func (h *host) kill(sig os.Signal) {
	h.t.Helper()
	if err := h.agent.Process.Signal(sig); err == nil {
		select {
		case <-h.done:
		case <-time.After(time.Minute):
			h.t.Fatalf("agent goes on a minute after %v\n%s", sig, h.log)
		}
	}
	h.agent = nil
}

// patience is how long something that must come is awaited.
const patience = 3 * time.Minute

func (h *host) await(what string, ok func() bool) {
	h.t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			h.t.Fatalf("%s: not within %s\n%s", what, patience, h.log)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (h *host) port(name string) api.Port {
	h.t.Helper()
	var p api.Port
	if err := json.Unmarshal([]byte(h.must("port", "show", name, "-o", "json")), &p); err != nil {
		h.t.Fatal(err)
	}
	return p
}

func (h *host) awaitPort(name string, state api.PortState) {
	h.t.Helper()
	h.await(fmt.Sprintf("port %s is %s", name, state), func() bool { return h.port(name).State == state })
}

func (h *host) ip(command string) { run(h.t, h.ns, "ip "+command) }

func run(t *testing.T, ns *netns.NS, command string) string {
	t.Helper()
	f := strings.Fields(command)
	out, err := ns.Output(f[0], f[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// guest makes a namespace whose eth0 is the other end of the host's device, up, with the address.
func (h *host) guest(device, mac, address string) *netns.NS {
	h.t.Helper()
	vm := testkit.NS(h.t, "vm")
	h.ip(fmt.Sprintf("link add %s type veth peer name eth0 address %s netns %s", device, mac, vm.Name))
	run(h.t, vm, "ip link set eth0 up")
	run(h.t, vm, "ip addr add "+address+" dev eth0 nodad")
	return vm
}

// pings says whether one of three echo requests is answered.
func pings(from *netns.NS, to string) bool {
	_, err := from.Output("ping", "-c", "3", "-i", "0.05", "-W", "1", to)
	return err == nil
}

// reaches says whether a single echo request is answered within half a second.
func reaches(from *netns.NS, to string) bool {
	_, err := from.Output("ping", "-c", "1", "-W", "0.5", to)
	return err == nil
}
