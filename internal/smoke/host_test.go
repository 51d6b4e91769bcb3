package smoke

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"heddle/internal/api"
	"heddle/internal/netns"
	"heddle/internal/testkit"
	"heddle/internal/testkit/cable"
)

// binaryVar is the environment variable with the path of a heddle program to test; without it, one is built.
const binaryVar = "HEDDLE_BINARY"

const (
	patience = time.Minute
	poll     = 10 * time.Millisecond
)

// host is a host with the real program: a namespace of its own, or the machine's.
type host struct {
	t      *testing.T
	ns     *netns.NS // nil: the machine's own
	dir    string
	binary string
	agent  *exec.Cmd
	log    bytes.Buffer
	api.Service
}

// newHost prepares a host without an agent.
func newHost(t *testing.T, ns *netns.NS) *host {
	t.Helper()
	testkit.Root(t)
	h := &host{t: t, ns: ns, dir: t.TempDir(), binary: heddle(t)}
	h.Service = api.NewClient(api.SocketPath(filepath.Join(h.dir, "run"), "default"))
	t.Cleanup(func() {
		if h.agent != nil {
			h.end(syscall.SIGTERM)
		}
		if err := h.heddle("down", "--purge"); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the agent said:\n%s", h.log.String())
		}
	})
	return h
}

// heddle gives the program to test.
func heddle(t *testing.T) string {
	t.Helper()
	if path := os.Getenv(binaryVar); path != "" {
		return path
	}
	testkit.Tool(t, "go")
	path := filepath.Join(t.TempDir(), "heddle")
	build := exec.Command("go", "build", "-o", path, "heddle/cmd/heddle")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build heddle: %v: %s", err, out)
	}
	return path
}

func (h *host) command(args ...string) *exec.Cmd {
	cmd := exec.Command(h.binary, args...)
	cmd.Env = append(os.Environ(), "HEDDLE_RUN_DIR="+filepath.Join(h.dir, "run"), "HEDDLE_STATE_DIR="+filepath.Join(h.dir, "state"))
	return cmd
}

func (h *host) launch(cmd *exec.Cmd) error {
	if h.ns == nil {
		return cmd.Start()
	}
	return h.ns.Start(cmd)
}

// heddle runs a command of the program on the host.
func (h *host) heddle(args ...string) error {
	cmd := h.command(args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := h.launch(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("heddle %s: %w: %s", strings.Join(args, " "), err, out.String())
	}
	return nil
}

// start starts the agent, with a configuration file unless it is empty, and waits until it serves.
func (h *host) start(config string) {
	h.t.Helper()
	args := []string{"agent"}
	if config != "" {
		file := filepath.Join(h.dir, "heddle.yaml")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			h.t.Fatal(err)
		}
		args = append(args, "--config", file)
	}
	h.agent = h.command(args...)
	h.agent.Stderr = &h.log
	if err := h.launch(h.agent); err != nil {
		h.t.Fatal(err)
	}
	h.await("the agent serves", func() bool {
		_, err := h.State(h.t.Context())
		return err == nil
	})
}

// end sends the agent a signal and waits for its end.
func (h *host) end(s syscall.Signal) {
	if err := h.agent.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		h.t.Error(err)
	}
	// How it ended is no matter: a killed process reports that.
	_ = h.agent.Wait()
	h.agent = nil
}

// apply replaces the configuration.
func (h *host) apply(config string) {
	h.t.Helper()
	if _, err := h.Apply(h.t.Context(), api.Apply{File: "heddle.yaml", Content: config}); err != nil {
		h.t.Fatal(err)
	}
}

// await waits until something holds.
func (h *host) await(what string, holds func() bool) {
	h.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(poll) {
		if time.Now().After(deadline) {
			h.t.Fatalf("waited in vain: %s", what)
		}
	}
}

// up waits until the ports and uplinks are up.
func (h *host) up(names ...string) {
	h.t.Helper()
	for _, name := range names {
		h.await(name+" is up", func() bool { return h.stateOf(name) == api.Up })
	}
}

// stateOf is the state of a port or uplink, empty when there is none of that name.
func (h *host) stateOf(name string) api.PortState {
	h.t.Helper()
	s, err := h.State(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	for _, p := range s.Ports {
		if p.Name == name {
			return p.State
		}
	}
	for _, u := range s.Uplinks {
		if u.Name == name {
			return u.State
		}
	}
	return ""
}

// counter is a counter of a port, or the count of a reason for which its frames were dropped.
func (h *host) counter(port, name string) uint64 {
	h.t.Helper()
	all, err := h.Stats(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	for _, s := range all {
		if s.Name != port {
			continue
		}
		for _, c := range append(s.Counters, s.Extra...) {
			if c.Name == name {
				return c.Value
			}
		}
		for _, r := range s.Drops {
			if r.Reason == name {
				return r.Value
			}
		}
	}
	return 0
}

// plug makes a veth whose end at the host has the name; what it gives is the other end, eth0 with that address in a namespace
// of its own.
func (h *host) plug(device string, mac [6]byte) *cable.End {
	h.t.Helper()
	ns := testkit.NS(h.t, device)
	handle, err := ns.Handle()
	if err != nil {
		h.t.Fatal(err)
	}
	defer handle.Close()
	err = h.do(func() error {
		veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: device}, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(handle)), PeerHardwareAddr: mac[:]}
		return errors.Join(netlink.LinkAdd(veth), netlink.LinkSetUp(veth))
	})
	if err == nil {
		err = ns.Do(func() error {
			l, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			return netlink.LinkSetUp(l)
		})
	}
	if err != nil {
		h.t.Fatalf("make veth %s: %v", device, err)
	}
	return cable.Open(h.t, ns, "eth0")
}

// do runs f in the host's namespace.
func (h *host) do(f func() error) error {
	if h.ns == nil {
		return f()
	}
	return h.ns.Do(f)
}
