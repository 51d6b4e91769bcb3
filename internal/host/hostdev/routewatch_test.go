package hostdev

import (
	"net/netip"
	"testing"
	"time"

	"heddle/internal/host/hostroute"
)

// The removal of a default route that Heddle set is noted, and nothing else that happens to routes.
func TestS165_TheRemovalOfAnOwnRouteIsNoted(t *testing.T) {
	host, _ := guest(t)
	run(t, host, "ip address add 192.0.2.9/24 dev port0")
	h := openIn(t, host)
	d, ok, err := h.Device("port0")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if err := host.Do(func() error {
		_, err := h.SetRoutes(d, hostroute.Route{Gateway: netip.MustParseAddr("192.0.2.1"), Metric: 7})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{"add default via 192.0.2.2 metric 9", "del default via 192.0.2.2 metric 9",
		"add 198.51.100.0/24 via 192.0.2.1", "del 198.51.100.0/24", "del default via 192.0.2.1 metric 7"} {
		run(t, host, "ip route "+c)
	}
	run(t, host, "ip link add last type veth peer name first") // its notification is after all that may be noted
	noted := 0
	for deadline := time.After(time.Minute); ; {
		select {
		case n := <-h.Notes():
			if n.Route() {
				noted++
			}
			if _, err := h.Apply(n); err != nil {
				t.Fatal(err)
			}
		case <-deadline:
			t.Fatalf("noted %d times", noted)
		}
		if _, there, err := h.Device("last"); err == nil && there && noted > 0 {
			break
		}
	}
	if noted != 1 {
		t.Errorf("noted %d times", noted)
	}
}

// A device that shares another one's frames by MAC is told from one that gets them all.
func TestS167_AMacvlanIsToldFromOneThatPassesEverything(t *testing.T) {
	host, _ := guest(t)
	run(t, host, "ip link add other0 type veth peer name other1")
	run(t, host, "ip link add mv0 link port0 type macvlan mode bridge")
	run(t, host, "ip link add mv1 link other0 type macvlan mode passthru")
	h := openIn(t, host)
	for name, shared := range map[string]bool{"mv0": true, "mv1": false, "port0": false} {
		if d, ok, err := h.Device(name); err != nil || !ok || d.Shared != shared || d.NotEthernet {
			t.Errorf("%s: %v, %v, %+v", name, ok, err, d)
		}
	}
}
