package adopttest

import (
	"bytes"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/observe/event"
	"heddle/internal/test/testkit"
)

// The machine reboots: the boot ID differs, the interfaces that the agent made are gone, and the host's own network
// configuration sets the addresses as it always does.
func TestS81_AfterARebootTheHostsOwnConfigurationCounts(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	if err := e.Heddle("host-port", "adopt", "eth0"); err != nil {
		t.Fatal(err)
	}
	e.reaches()
	if err := e.Heddle("host-port", "confirm"); err != nil {
		t.Fatal(err)
	}
	e.End(syscall.SIGKILL)
	e.run("ip link delete vmk0")
	for _, c := range []string{"ip address add 192.0.2.10/24 dev eth0", "ip address add 2001:db8::10/64 dev eth0 nodad",
		"ip route add default via 192.0.2.1 dev eth0", "ip -6 route add default via 2001:db8::1 dev eth0"} {
		e.run(c)
	}
	e.reboot()
	before := e.settled()
	e.Start("")
	e.up()
	e.reaches()
	e.restored(before, "after the reboot")
	all, err := e.HostPorts(t.Context())
	if err != nil || len(all) != 0 {
		t.Errorf("%v: %+v", err, all)
	}
	if n, text := e.happened(event.Reverted); n != 1 || !strings.Contains(text, "started again") {
		t.Errorf("%d reverted: %s", n, text)
	}
	if err := e.Heddle("host-port", "adopt", "eth0", "--dry-run"); err != nil {
		t.Errorf("adopting again: %v", err)
	}
}

func TestS81_TheAgentIsKilledDuringTheMove(t *testing.T) {
	testkit.Long(t, "kills agents during a move")
	t.Parallel()
	e := newEstate(t)
	before := e.settled()
	s := e.stream("203.0.113.9")
	for i := range 8 {
		cmd := e.Command("host-port", "adopt", "eth0", "--confirm-within", "1h")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := e.NS.Start(cmd); err != nil {
			t.Fatal(err)
		}
		e.Await(fmt.Sprintf("step %d is begun", i), func() bool { return e.begun() >= i })
		e.End(syscall.SIGKILL)
		_ = cmd.Wait() // it lost the agent
		e.Start("")
		e.up()
		all, err := e.HostPorts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 1 { // it was done, and is waited for
			e.reaches()
			if _, err := e.ReleaseAdoption(t.Context(), api.Release{Name: all[0].Name}); err != nil {
				t.Error(err)
			}
		}
		e.restored(before, fmt.Sprintf("killed in round %d: %s", i, out.String()))
		e.goesOn(s, "after a kill")
		if t.Failed() {
			return
		}
	}
	e.end(s)
}
