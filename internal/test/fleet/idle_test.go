package fleet

import (
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
)

// idleEnv names the number of connections, for a machine that has nothing else to do.
const idleEnv = "HEDDLE_IDLE_CONNECTIONS"

// usualIdle is far more than a controller keeps of those that say nothing.
const usualIdle = 10_000

// idle opens connections to the controller that say nothing, and stay open on this side.
func (f *fleet) idle(n int) {
	f.t.Helper()
	var all []net.Conn
	f.t.Cleanup(func() {
		for _, c := range all {
			_ = c.Close()
		}
	})
	inside(f.t, f.network, func() error {
		for range n {
			c, err := net.Dial("tcp", f.controller.Address)
			if err != nil {
				return err
			}
			all = append(all, c)
		}
		return nil
	})
}

// memory is what the controller has in memory, in bytes.
func (f *fleet) memory() (kib int64) {
	f.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", f.controller.PID()))
	if err != nil {
		f.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		f.t.Fatal(err)
	}
	return kib << 10
}

// Ten thousand connections that say nothing are bounded in what they take, refused in the end and told of in the log,
// and keep no host out: neither one that joins nor one that comes again.
func TestS104_IdleConnectionsKeepNoHostOut(t *testing.T) {
	testkit.Long(t, "opens ten thousand connections")
	t.Parallel()
	connections := usualIdle
	if text := os.Getenv(idleEnv); text != "" {
		if _, err := fmt.Sscan(text, &connections); err != nil {
			t.Fatal(err)
		}
	}
	f := newFleetSized(t, 1, ownConfig, "own1", "own2")
	f.controller.Start()
	f.controller.Define(fleetText)
	before := f.memory()
	f.idle(connections)
	f.controller.Join(f.hosts[0].Host, "esx0", map[string]string{"rack": "a"})
	f.inState("esx0", api.HostUp)
	after := f.memory()
	t.Logf("%d idle connections: %d MiB in memory, %d MiB without", connections, after>>20, before>>20)
	if most := int64(600 << 20); after > most {
		t.Errorf("the controller has %d MiB in memory", after>>20)
	}

	f.controller.Await("the log tells of those that were ended", func() bool {
		return strings.Contains(f.controller.Log(), "did not prove who they are were ended, for want of room")
	})
	if n := strings.Count(f.controller.Log(), "for want of room"); n > connections/100 {
		t.Errorf("%d lines in the log for %d connections", n, connections)
	}
	h := f.hosts[0]
	h.End(syscall.SIGTERM)
	f.idle(connections / 10)
	h.Start("")
	h.Await("it is connected again", func() bool {
		m, err := h.Membership(t.Context())
		return err == nil && m.Connected != ""
	})
	f.inState("esx0", api.HostUp)
	if out := f.controller.Define(strings.Replace(fleetText, "access: 20", "access: 21", 1)); len(out.Waiting) > 0 {
		t.Errorf("a change: %+v", out)
	}
}
