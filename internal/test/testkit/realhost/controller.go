package realhost

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/clockshift"
	"heddle/internal/test/testkit/leaks"
)

// Controller is a controller: the real program, with etcd inside.
type Controller struct {
	T  *testing.T
	NS *netns.NS
	// Address is where agents find it.
	Address string
	Dir     string
	// Name is for people; Args are more flags. Both count from the next start.
	Name string
	Args []string
	// Clock is the controller's from its next start; nil for the machine's.
	Clock *clockshift.Clock
	*api.Fleet
	// Asking is the heddle program that asks it; "" for this version's.
	Asking string

	binary  string
	process *exec.Cmd
	log     said
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
	testkit.Weigh(t, 2)
	c := &Controller{T: t, NS: ns, Address: address, Dir: t.TempDir(), Name: "controller1", binary: path}
	c.Fleet = api.NewFleet(c.Socket())
	t.Cleanup(func() {
		if c.process != nil {
			c.End(syscall.SIGTERM)
		}
		if t.Failed() {
			t.Logf("%s said:\n%s", c.Name, c.log.String())
		}
	})
	return c
}

// Socket is where it answers commands.
func (c *Controller) Socket() string { return filepath.Join(c.Dir, "run", "api.sock") }

// DataDir is where it keeps everything.
func (c *Controller) DataDir() string { return filepath.Join(c.Dir, "data") }

// OwnDisk has it keep everything on a file system of its own, 1 GiB in memory, which goes with the test.
func (c *Controller) OwnDisk() {
	c.T.Helper()
	if err := unix.Mount("heddle-test", c.Dir, "tmpfs", 0, "mode=0700,size=1g"); err != nil {
		c.T.Fatal(err)
	}
	c.T.Cleanup(func() { testkit.Unmount(c.T, c.Dir) })
}

// Start starts it and waits until it answers.
func (c *Controller) Start() {
	c.T.Helper()
	c.Launch()
	c.Answers()
}

// Launch starts it. One of several answers when the majority of them is there.
func (c *Controller) Launch() {
	c.T.Helper()
	c.process = exec.Command(c.binary, append([]string{"--data-dir", c.DataDir(), "--listen", c.Address, "--socket",
		c.Socket(), "--name", c.Name}, c.Args...)...)
	c.process.Env, c.process.Stderr = os.Environ(), &c.log
	if err := launch(c.T, c.NS, c.process, c.Clock); err != nil {
		c.T.Fatal(err)
	}
}

// Answers waits until it answers.
func (c *Controller) Answers() {
	c.T.Helper()
	c.Await(c.Name+" answers", func() bool {
		_, err := c.Hosts(c.T.Context())
		return err == nil
	})
}

// Run runs a command of the program on the controller's machine and gives what it prints; its error has that too.
func (c *Controller) Run(args ...string) (string, error) {
	args = append(args, "--socket", c.Socket())
	switch args[0] {
	case "join":
		args = append(args, "--listen", c.Address, "--name", c.Name, "--data-dir", c.DataDir())
	case "restore":
		args = append(args, "--data-dir", c.DataDir())
	}
	cmd := exec.Command(c.binary, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := c.NS.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		err = fmt.Errorf("heddle-controller %s: %w: %s", strings.Join(args, " "), err, out.String())
	}
	return out.String(), err
}

// Must is Run for a command that has to work. For a token is asked again while etcd takes no change: another one harms
// nobody.
func (c *Controller) Must(args ...string) (out string) {
	c.T.Helper()
	run := func() (err error) {
		out, err = c.Run(args...)
		return err
	}
	var err error
	if args[0] == "token" {
		err = Again(c.T, run)
	} else {
		err = run()
	}
	if err != nil {
		c.T.Fatal(err)
	}
	return out
}

// Joins makes it part of the cluster of another one, starts it if it does not run, and waits until it has a vote.
func (c *Controller) Joins(other *Controller) {
	c.T.Helper()
	c.Must("join", other.Address, "--token", strings.TrimSpace(other.Must("token")))
	if c.process == nil {
		c.Start()
	}
	c.Await(c.Name+" has a vote", func() bool {
		role := other.RoleOf(c.Name)
		return role == "voter" || role == "leader"
	})
}

// RoleOf is a controller's in etcd, as this one sees it; "" where there is no such controller.
func (c *Controller) RoleOf(name string) string {
	c.T.Helper()
	list, err := c.Controllers(c.T.Context())
	if err != nil {
		return ""
	}
	for _, r := range list.Controllers {
		if r.Name == name {
			return r.Role
		}
	}
	return ""
}

// Log is what the controller has said so far.
func (c *Controller) Log() string { return c.log.String() }

// End sends the controller a signal and waits for its end.
func (c *Controller) End(s syscall.Signal) {
	if err := c.process.Process.Signal(s); err != nil {
		c.T.Error(err)
	}
	_ = c.process.Wait() // how it ended is no matter: a killed process reports that
	c.process = nil
}

// PID is the process's.
func (c *Controller) PID() int { return c.process.Process.Pid }

// Freeze stops the controller where it is. It goes on with the function that is returned, at the test's end at last.
func (c *Controller) Freeze() (thaw func()) {
	c.T.Helper()
	p := c.process.Process
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		c.T.Fatal(err)
	}
	thaw = func() { _ = p.Signal(syscall.SIGCONT) } // it may have ended
	c.T.Cleanup(thaw)
	return thaw
}

// Await waits until something holds.
func (c *Controller) Await(what string, holds func() bool) {
	c.T.Helper()
	await(c.T, what, holds)
}

// Define makes the definition that text, and waits until all hosts that are connected have it active.
func (c *Controller) Define(text string) *api.Defined {
	c.T.Helper()
	out, err := c.Defines(api.Define{File: "fleet.yaml", Content: text, Wait: Patience})
	if err != nil {
		c.T.Fatal(err)
	}
	return out
}

// Join makes a host part of the cluster.
func (c *Controller) Join(h *Host, name string, labels map[string]string) {
	c.T.Helper()
	token, err := c.JoinToken(c.T.Context(), api.JoinTerms{Labels: labels})
	if err == nil { // a repeated one is with the same token, as its error says
		err = Again(c.T, func() error {
			_, err := h.Join(c.T.Context(), api.Join{Controller: c.Address, Token: token.Token, Name: name})
			return err
		})
	}
	if err != nil {
		c.T.Fatal(err)
	}
}

// StateOf is how a host follows the definition, "" where there is no such host or that is not known at present.
func (c *Controller) StateOf(name string) api.HostState {
	c.T.Helper()
	list, err := c.Hosts(c.T.Context())
	if err != nil {
		c.T.Fatal(err)
	}
	for _, h := range list.Hosts {
		if h.Name == name && !h.Stale {
			return h.State
		}
	}
	return ""
}

// Command is a command of the heddle program that asks the hosts of this controller.
func (c *Controller) Command(args ...string) *exec.Cmd {
	path := c.Asking
	if path == "" {
		path = program(c.T)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "HEDDLE_CONTROLLER="+c.Socket())
	return cmd
}

// Heddle runs a command of the heddle program that asks the hosts of this controller.
func (c *Controller) Heddle(args ...string) (out, errs string, status int) {
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

// JSON runs a command of the heddle program with -o json, and reads what it prints.
func (c *Controller) JSON(into any, args ...string) {
	c.T.Helper()
	out, errs, status := c.Heddle(append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(out), into); status != 0 || err != nil {
		c.T.Fatalf("heddle %v: status %d, %v: %s%s", args, status, err, out, errs)
	}
}
