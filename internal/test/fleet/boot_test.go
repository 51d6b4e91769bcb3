package fleet

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
)

// A host that boots forwards by its last slice, whatever else is not there yet or wrong.
func TestS103_AHostBootsByItsSliceWhateverIsMissing(t *testing.T) {
	testkit.Long(t, "boots a host once for each thing that is missing; "+
		"TestS103_AFleetGoesOnWhileItsControllerIsAway boots one")
	t.Parallel()
	f := newFleet(t)
	f.controller.Start()
	for n, h := range f.hosts {
		f.controller.Join(h.Host, fmt.Sprintf("esx%d", n), map[string]string{"rack": "a"})
	}
	f.controller.Define(fleetText)
	for n := range f.hosts {
		f.hosts[n].Up("uplink1")
		f.connect(n, 3, "p-web", "web")
	}
	f.controller.End(syscall.SIGKILL)
	h := f.hosts[1]
	state := filepath.Join(h.Dir, "state", "default")
	own := fmt.Sprintf(ownConfig, 1, 1)

	for _, c := range []struct {
		name   string
		before func() // the host has no power
		boot   func()
		after  func()
		warns  string
	}{
		{"uplinks appear late", func() { f.unplug(1, "eno2") }, func() { h.Start("") }, func() {
			h.Up("p-web")
			join(t, h.NS, "eno2", f.network, "eno2-1")
			inside(t, f.network, func() error { return enslave("eno2-1", "net-eno2") })
		}, ""},
		{"its own file is not there", func() { h.write(t, h.File(), "") }, func() {
			h.StartWith(h.Launch, "--config", h.File()+".none")
		}, nil, "no such file"},
		{"its own file has a fault", nil, func() { h.Start("switches: 7\n") }, nil, "switches"},
		{"its own file claims the controllers' switch", nil, func() {
			h.Start(strings.Replace(own, "eno1", "eno2", 1))
		}, nil, "both claim it"},
		{"a crash left half-written files", func() {
			for _, file := range []string{"state.json", "identity/identity.json"} {
				text, err := os.ReadFile(filepath.Join(state, file))
				if err != nil {
					t.Fatal(err)
				}
				h.write(t, filepath.Join(state, file+".new"), string(text[:len(text)/2]))
			}
		}, func() { h.Start("") }, nil, ""},
		{"the machine has another name", nil, func() { h.StartWith(h.launchNamed("other")) }, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.T = t
			defer func() { h.T = f.t }()
			h.Reboot()
			if c.before != nil {
				c.before()
			}
			c.boot()
			if c.after != nil {
				c.after()
			}
			h.Up("own1", "own2", "p-web", "uplink1")
			f.reaches("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))
			f.reaches("p-own1@1", "p-own2@1", fleetMAC(1, 1), fleetMAC(1, 2))
			h.warns(t, c.warns)
		})
	}

	if m, err := h.Membership(t.Context()); err != nil || m.Name != "esx1" {
		t.Errorf("with another name the host is %+v, %v", m, err)
	}
	f.bootsBehind()
}

// bootsBehind boots the second host after it has missed a change: it forwards by what it has, and takes the change from
// the controller that is there without being asked.
func (f *fleet) bootsBehind() {
	f.t.Helper()
	h := f.hosts[1]
	h.Reboot()
	f.controller.Start()
	f.inState("esx0", api.HostUp)
	f.controller.Define(strings.Replace(fleetText, "access: 10", "access: 50", 1))
	h.Start("")
	h.Await("the host has the change", func() bool { return f.vlan(1, "p-web") == "access 50" })
	f.inState("esx1", api.HostUp)
	f.reaches("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))
}

func (h *host) write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// warns makes sure that the host's status warns of that, or, where it is empty, of no file.
func (h *host) warns(t *testing.T, want string) {
	t.Helper()
	s, err := h.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(s.Agent.Warnings, "\n")
	if is := strings.Contains(all, "was not used at the agent's start"); is != (want != "") ||
		!strings.Contains(all, want) {
		t.Errorf("it warns of %q, want %q", all, want)
	}
}

// launchNamed starts a command on the host where the machine has that name.
func (h *host) launchNamed(name string) func(*exec.Cmd) error {
	return func(cmd *exec.Cmd) error {
		started := make(chan error)
		go func() {
			runtime.LockOSThread() // for good: the thread ends with the goroutine
			started <- errors.Join(unix.Unshare(unix.CLONE_NEWUTS), unix.Sethostname([]byte(name)), h.Launch(cmd))
		}()
		return <-started
	}
}
