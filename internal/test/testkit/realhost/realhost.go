package realhost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/clockshift"
	"heddle/internal/test/testkit/leaks"
)

// BinaryVar is the environment variable with the path of a heddle program to test; without it, one is built.
const BinaryVar = "HEDDLE_BINARY"

// Patience bounds how long Await waits, and Poll is how often it looks.
const (
	Patience = 3 * time.Minute
	Poll     = 10 * time.Millisecond
)

// Host is a host. Its api.Service is the agent's.
type Host struct {
	T   *testing.T
	NS  *netns.NS // nil: the machine's own
	Dir string    // of the agent's run and state directories
	// Clock is that of an agent that is started; nil for the machine's. It needs a namespace.
	Clock *clockshift.Clock
	// Uptime is by how much the clock of an agent that is started, which nobody sets, is ahead of the machine's:
	// as on a machine that has run for longer.
	Uptime time.Duration
	// Args are more flags of an agent that is started.
	Args   []string
	binary string
	agent  *exec.Cmd
	log    said
	made   *leaks.Objects
	api.Service
}

// New prepares a host without an agent. What it leaves in the kernel goes with the test, and what does not is an error.
func New(t *testing.T, ns *netns.NS) *Host {
	t.Helper()
	testkit.Root(t)
	h := &Host{T: t, NS: ns, Dir: t.TempDir(), binary: program(t)}
	h.made = leaks.Watch(t)
	testkit.Weigh(t, 1)
	h.Service = api.NewClient(api.SocketPath(filepath.Join(h.Dir, "run"), "default"))
	t.Cleanup(func() {
		if h.agent != nil {
			h.End(syscall.SIGTERM)
		}
		h.made.Pins(t, filepath.Join(h.Dir, "run", "bpf"))
		if err := h.Heddle("down", "--purge"); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the agent said:\n%s", h.log.String())
		}
	})
	return h
}

// Binary is the path of the program.
func (h *Host) Binary() string { return h.binary }

// program gives the path of the program to test.
func program(t *testing.T) string {
	t.Helper()
	if path := os.Getenv(BinaryVar); path != "" {
		return path
	}
	testkit.Tool(t, "go")
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Programs are the paths of the program to test and of the controller's.
func Programs(t *testing.T) (heddle, controller string) {
	t.Helper()
	controller, err := builtController()
	if err != nil {
		t.Fatal(err)
	}
	return program(t), controller
}

// built builds the program once for all tests of the process, builtController the controller's.
var (
	built           = sync.OnceValues(func() (string, error) { return build("heddle") })
	builtController = sync.OnceValues(func() (string, error) { return build("heddle-controller") })
)

// build builds a program, with the race detector in a test that has it. Where it is, in Go's cache, nobody has to
// remove it: "go run" says where, once the cache has it, which is the second time at the latest.
func build(name string, flags ...string) (string, error) { return buildIn("", name, flags...) }

// buildIn is build with the sources of another directory, whose module has the same name; "" for this one's.
func buildIn(dir, name string, flags ...string) (string, error) {
	cgo := "CGO_ENABLED=0"
	if raced {
		flags, cgo = append(flags, "-race"), "CGO_ENABLED=1"
	}
	for range 3 {
		var out, errs bytes.Buffer
		run := exec.Command("go", append(append([]string{"run"}, flags...), "-exec", "echo", "heddle/cmd/"+name)...)
		run.Env, run.Stdout, run.Stderr, run.Dir = append(os.Environ(), cgo), &out, &errs, dir
		if err := run.Run(); err != nil {
			return "", fmt.Errorf("build %s: %w: %s", name, err, errs.String())
		}
		path := strings.TrimSpace(out.String())
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("build %s: Go's cache does not keep the program: give the path of one in %s", name, BinaryVar)
}

// LibvirtDir is where the agent looks for a libvirt: never this machine's own.
func (h *Host) LibvirtDir() string { return filepath.Join(h.Dir, "libvirt/run") }

// Command is a command of the program, with the host's directories, to be started with Launch.
func (h *Host) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(h.binary, args...)
	cmd.Env = append(os.Environ(), "HEDDLE_RUN_DIR="+filepath.Join(h.Dir, "run"), "HEDDLE_STATE_DIR="+
		filepath.Join(h.Dir, "state"),
		"HEDDLE_LIBVIRT_DIR="+h.LibvirtDir())
	return cmd
}

// Log is what the agents of the host have said so far.
func (h *Host) Log() string { return h.log.String() }

// Launch starts a command on the host.
func (h *Host) Launch(cmd *exec.Cmd) error { return launch(h.T, h.NS, cmd, nil) }

// launch starts a command in a namespace, with a clock of its own or, for nil, the machine's.
func launch(t *testing.T, ns *netns.NS, cmd *exec.Cmd, clock *clockshift.Clock) error {
	switch {
	case ns == nil:
		return cmd.Start()
	case clock != nil:
		return clockshift.Start(t, ns, cmd, clock)
	}
	return ns.Start(cmd)
}

// Heddle runs a command of the program on the host; its error has the command's output.
func (h *Host) Heddle(args ...string) error {
	cmd := h.Command(args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := h.Launch(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("heddle %s: %w: %s", strings.Join(args, " "), err, out.String())
	}
	return nil
}

// Output runs a command of the program on the host, no longer than ctx lasts, and gives its standard output; its error
// has the rest.
func (h *Host) Output(ctx context.Context, args ...string) ([]byte, error) {
	cmd := h.Command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := h.Launch(cmd)
	if err == nil {
		stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
		err = cmd.Wait()
		stop()
	}
	if err != nil {
		return nil, fmt.Errorf("heddle %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return out.Bytes(), nil
}

// Start starts the agent, with a configuration file of that content unless it is empty, and waits until it serves.
func (h *Host) Start(config string) {
	h.T.Helper()
	if config == "" {
		h.StartWith(h.launchAgent)
		return
	}
	if err := os.WriteFile(h.File(), []byte(config), 0o600); err != nil {
		h.T.Fatal(err)
	}
	h.StartWith(h.launchAgent, "--config", h.File())
}

// File is the path of the host's configuration file.
func (h *Host) File() string { return filepath.Join(h.Dir, "heddle.yaml") }

func (h *Host) launchAgent(cmd *exec.Cmd) error {
	if h.Uptime > 0 {
		clockshift.Longer(h.T, cmd, h.Uptime)
	}
	return launch(h.T, h.NS, cmd, h.Clock)
}

// StartWith starts the agent by how with these arguments, and waits until it serves.
func (h *Host) StartWith(how func(*exec.Cmd) error, args ...string) {
	h.T.Helper()
	h.agent = h.Command(slices.Concat([]string{"agent"}, h.Args, args)...)
	h.agent.Stderr = &h.log
	if err := how(h.agent); err != nil {
		h.T.Fatal(err)
	}
	h.Await("the agent serves", func() bool {
		_, err := h.State(h.T.Context())
		return err == nil
	})
	h.made.Process(h.T, h.agent.Process.Pid)
}

// End sends the agent a signal and waits for its end.
func (h *Host) End(s syscall.Signal) {
	h.Signal(s)
	h.Ended()
}

// Signal sends the agent a signal.
func (h *Host) Signal(s syscall.Signal) {
	if err := h.agent.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		h.T.Error(err)
	}
}

// Ended waits for the end of an agent that was told to.
func (h *Host) Ended() {
	_ = h.agent.Wait() // how it ended is no matter: a killed process reports that
	h.agent = nil
}

// Configure replaces the configuration.
func (h *Host) Configure(config string) {
	h.T.Helper()
	if _, err := h.Apply(h.T.Context(), api.Apply{File: "heddle.yaml", Content: config}); err != nil {
		h.T.Fatal(err)
	}
}

// Await waits until something holds.
func (h *Host) Await(what string, holds func() bool) {
	h.T.Helper()
	await(h.T, what, holds)
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !holds(); time.Sleep(Poll) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
