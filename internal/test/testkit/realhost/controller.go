package realhost

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/leaks"
)

// Controller is a controller: the real program, with etcd inside.
type Controller struct {
	T  *testing.T
	NS *netns.NS
	// Address is where agents find it.
	Address string
	Dir     string
	*api.Fleet

	binary  string
	process *exec.Cmd
	log     bytes.Buffer
}

// NewController prepares a controller in a namespace that has the address, HOST:PORT. Start starts it.
func NewController(t *testing.T, ns *netns.NS, address string) *Controller {
	t.Helper()
	testkit.Root(t)
	testkit.Tool(t, "go")
	path, err := builtController()
	if err != nil {
		t.Fatal(err)
	}
	leaks.Watch(t)
	c := &Controller{T: t, NS: ns, Address: address, Dir: t.TempDir(), binary: path}
	c.Fleet = api.NewFleet(c.Socket())
	t.Cleanup(func() {
		if c.process != nil {
			c.End(syscall.SIGTERM)
		}
		if t.Failed() {
			t.Logf("the controller said:\n%s", c.log.String())
		}
	})
	return c
}

// Socket is where it answers commands.
func (c *Controller) Socket() string { return filepath.Join(c.Dir, "run", "api.sock") }

// Start starts it and waits until it answers.
func (c *Controller) Start() {
	c.T.Helper()
	c.process = exec.Command(c.binary, "--data-dir", filepath.Join(c.Dir, "data"), "--listen", c.Address, "--socket",
		c.Socket())
	c.process.Env, c.process.Stderr = os.Environ(), &c.log
	if err := c.NS.Start(c.process); err != nil {
		c.T.Fatal(err)
	}
	c.Await("the controller answers", func() bool {
		_, err := c.Hosts(c.T.Context())
		return err == nil
	})
}

// End sends the controller a signal and waits for its end.
func (c *Controller) End(s syscall.Signal) {
	if err := c.process.Process.Signal(s); err != nil {
		c.T.Error(err)
	}
	_ = c.process.Wait() // how it ended is no matter: a killed process reports that
	c.process = nil
}

// Await waits until something holds.
func (c *Controller) Await(what string, holds func() bool) {
	c.T.Helper()
	await(c.T, what, holds)
}

// Define makes the definition that text, and waits until all hosts that are connected have it active.
func (c *Controller) Define(text string) *api.Defined {
	c.T.Helper()
	out, err := c.Fleet.Define(c.T.Context(), api.Define{File: "fleet.yaml", Content: text, Wait: Patience})
	if err != nil {
		c.T.Fatal(err)
	}
	return out
}

// Join makes a host part of the cluster.
func (c *Controller) Join(h *Host, name string, labels map[string]string) {
	c.T.Helper()
	token, err := c.JoinToken(c.T.Context(), api.JoinTerms{Labels: labels})
	if err == nil {
		_, err = h.Join(c.T.Context(), api.Join{Controller: c.Address, Token: token.Token, Name: name})
	}
	if err != nil {
		c.T.Fatal(err)
	}
}

// StateOf is how a host follows the definition, "" where there is no such host.
func (c *Controller) StateOf(name string) api.HostState {
	c.T.Helper()
	list, err := c.Hosts(c.T.Context())
	if err != nil {
		c.T.Fatal(err)
	}
	for _, h := range list.Hosts {
		if h.Name == name {
			return h.State
		}
	}
	return ""
}

// Command is a command of the heddle program that asks the hosts of this controller.
func (c *Controller) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(program(c.T), args...)
	cmd.Env = append(os.Environ(), "HEDDLE_CONTROLLER="+c.Socket())
	return cmd
}

// Run runs a command of the heddle program that asks the hosts of this controller.
func (c *Controller) Run(args ...string) (out, errs string, status int) {
	c.T.Helper()
	var o, e bytes.Buffer
	cmd := c.Command(args...)
	cmd.Stdout, cmd.Stderr = &o, &e
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		c.T.Fatal(err)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}
