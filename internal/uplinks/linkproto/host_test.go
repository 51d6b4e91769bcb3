package linkproto_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/asheddle"
	"heddle/internal/test/testkit/leaks"
)

// TestMain lets the test program be the heddle program of the hosts that tests build.
func TestMain(m *testing.M) { asheddle.Env(m, asHeddle) }

// asHeddle is the environment variable that makes the test program the heddle program.
const asHeddle = "LINKPROTO_TEST_AS_HEDDLE"

const (
	patience = 2 * time.Minute
	poll     = 20 * time.Millisecond
)

// host is a host namespace with the real agent.
type host struct {
	t     *testing.T
	ns    *netns.NS
	dir   string
	agent *exec.Cmd
	log   bytes.Buffer
	made  *leaks.Objects
	*api.Client
}

// newHost makes a host without an agent yet.
func newHost(t *testing.T, name string) *host {
	t.Helper()
	testkit.Root(t)
	h := &host{t: t, ns: testkit.NS(t, name), dir: t.TempDir(), made: leaks.Watch(t)}
	h.Client = api.NewClient(api.SocketPath(filepath.Join(h.dir, "run"), "default"))
	t.Cleanup(func() {
		if h.agent != nil {
			h.end(syscall.SIGTERM)
		}
		h.made.Pins(t, filepath.Join(h.dir, "run", "bpf"))
		h.heddle("down", "--purge")
		if t.Failed() {
			t.Logf("the agent of %s said:\n%s", name, h.log.String())
		}
	})
	return h
}

func (h *host) command(args ...string) *exec.Cmd {
	c := exec.Command("/proc/self/exe", args...)
	c.Env = append(os.Environ(), asHeddle+"=1", "HEDDLE_RUN_DIR="+filepath.Join(h.dir, "run"), "HEDDLE_STATE_DIR="+
		filepath.Join(h.dir, "state"))
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c
}

// heddle runs a command of the program on the host and returns what it printed.
func (h *host) heddle(args ...string) string {
	h.t.Helper()
	c := h.command(args...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := h.ns.Start(c)
	if err == nil {
		err = c.Wait()
	}
	if err != nil {
		h.t.Errorf("heddle %s: %v: %s", strings.Join(args, " "), err, out.String())
	}
	return out.String()
}

// start starts the agent and waits until it serves. With an empty configuration it uses the previous one.
func (h *host) start(yaml string) {
	h.t.Helper()
	args := []string{"agent"}
	if yaml != "" {
		file := filepath.Join(h.dir, "heddle.yaml")
		if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
			h.t.Fatal(err)
		}
		args = append(args, "--config", file)
	}
	h.agent = h.command(args...)
	h.agent.Stderr = &h.log
	if err := h.ns.Start(h.agent); err != nil {
		h.t.Fatal(err)
	}
	h.await("the agent serves", func() bool { _, err := h.State(h.t.Context()); return err == nil })
	h.made.Process(h.t, h.agent.Process.Pid)
}

// end sends the agent a signal and waits for its end.
func (h *host) end(s syscall.Signal) {
	_ = h.agent.Process.Signal(s)
	_ = h.agent.Wait() // a killed process gives an error
	h.agent = nil
}

func (h *host) await(what string, holds func() bool) {
	h.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(poll) {
		if time.Now().After(deadline) {
			h.t.Fatalf("waited in vain: %s\n%s", what, h.log.String())
		}
	}
}

// uplink returns an uplink as "heddle uplink show" prints it.
func (h *host) uplink(name string) api.Uplink {
	h.t.Helper()
	s, err := h.State(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	for _, u := range s.Uplinks {
		if u.Name == name {
			return u
		}
	}
	h.t.Fatalf("no uplink %s", name)
	return api.Uplink{}
}

// used waits until exactly these uplinks of the LAG are used.
func (h *host) used(names ...string) {
	h.t.Helper()
	want := strings.Join(names, " ")
	h.await("used are "+want, func() bool {
		s, err := h.State(h.t.Context())
		if err != nil {
			return false
		}
		var got []string
		for _, u := range s.Uplinks {
			if u.LAG != nil && u.LAG.Used && u.State == api.Up {
				got = append(got, u.Name)
			}
		}
		return strings.Join(got, " ") == want
	})
}

// run runs a command in a namespace.
func run(t *testing.T, ns *netns.NS, command string) string {
	t.Helper()
	f := strings.Fields(command)
	out, err := ns.Output(f[0], f[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// wires connects two namespaces by n veth pairs w0, w1, …, with the same names at both ends.
func wires(t *testing.T, a, b *netns.NS, n int) {
	t.Helper()
	for i := range n {
		run(t, a, fmt.Sprintf("ip link add w%d up type veth peer name w%d netns %s", i, i, b.Path()))
		run(t, b, fmt.Sprintf("ip link set w%d up", i))
	}
}

// config returns the configuration of a host with a LAG of two uplinks and a host interface, whose MAC is made from the
// address's last digit: a derived MAC would be the same on all hosts of one machine.
func config(address, lag, lldp string) string {
	return fmt.Sprintf(`switches:
  - name: lab
    uplinks:
      - {name: up0, device: w0}
      - {name: up1, device: w1}
    lags:
      - {name: lag1, uplinks: [up0, up1], %s}
    discovery: {lldp: %s}
    portGroups:
      - {name: hosts}
ports:
  - {name: vmk0, switch: lab, portGroup: hosts, role: host, mac: "02:00:00:00:00:%s", addresses: [%s/24]}
`, lag, lldp, address[len(address)-1:]+"0", address)
}
