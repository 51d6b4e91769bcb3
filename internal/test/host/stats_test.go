package host

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/diagnose/stats"
)

const statsHost = `
switches:
  - name: lab
    kind: standard
    portGroups: [{name: web, vlan: {access: 10}}, {name: db, vlan: {access: 20}}]
ports:
  - {name: vm1, switch: lab, portGroup: web, device: tap1}
  - {name: vm2, switch: lab, portGroup: web, device: tap2}
  - {name: vm3, switch: lab, portGroup: db, device: tap3}
`

// statsLab is a host with three guests, two of which exchange traffic without end.
func statsLab(t *testing.T) *host {
	h := newHost(t)
	vm1 := h.guest("tap1", "02:00:00:00:01:01", "192.0.2.1/24")
	h.guest("tap2", "02:00:00:00:01:02", "192.0.2.2/24")
	h.guest("tap3", "02:00:00:00:01:03", "192.0.2.3/24")
	h.start("--config", h.file("heddle.yaml", statsHost))
	for _, p := range []string{"vm1", "vm2", "vm3"} {
		h.awaitPort(p, api.Up)
	}
	flood := exec.Command("ping", "-q", "-f", "-s", "100", "192.0.2.2")
	if err := vm1.Start(flood); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = flood.Process.Kill()
		_ = flood.Wait()
	})
	return h
}

func TestS94_TheAccountsAreCheckedOnALiveHostUnderTraffic(t *testing.T) {
	h := statsLab(t)
	var now []api.PortAccount
	read := func() {
		t.Helper()
		if err := json.Unmarshal([]byte(h.must("stats", "--check", "-o", "json")), &now); err != nil {
			t.Fatal(err)
		}
	}
	h.await("a thousand frames have passed", func() bool { read(); return now[0].Received > 1000 })
	if len(now) != 3 {
		t.Fatalf("%d ports: %+v", len(now), now)
	}
	for _, a := range now {
		if a.State == "broken" || a.Name == "vm3" && a.State != "exact" {
			t.Errorf("%+v", a)
		}
	}
	if out := h.must("stats", "--check"); !strings.Contains(out, "of 3 ports and uplinks were at rest") {
		t.Errorf("no summary:\n%s", out)
	}
	// At rest, every frame has its fate, to the frame.
	run(t, h.ns, "ip link set tap1 down")
	h.await("every port is exact at rest", func() bool {
		read()
		for _, a := range now {
			if a.State != "exact" {
				return false
			}
		}
		return true
	})
}

func TestS80_StatsOfPortGroupsAndSwitchesWithRates(t *testing.T) {
	h := statsLab(t)
	lines := func(args ...string) (out []stats.Line) {
		t.Helper()
		if err := json.Unmarshal([]byte(h.must(append([]string{"stats", "-o", "json"}, args...)...)),
			&out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	var groups []stats.Line
	h.await("rates are measured", func() bool {
		groups = lines("--by", "portgroup", "--rates", "--interval", "200ms")
		return groups[0].Rates != nil && groups[0].Rates.PacketsIn > 10
	})
	if len(groups) != 2 || groups[0].PortGroup != "web" || groups[0].Ports != 2 || groups[1].Rates == nil {
		t.Errorf("%+v", groups)
	}
	if sw := lines("--by", "switch"); len(sw) != 1 || sw[0].Ports != 3 ||
		sw[0].Counts.PacketsIn < groups[0].Counts.PacketsIn {
		t.Errorf("%+v, less than %+v", sw, groups)
	}
	out := h.must("stats", "--watch", "--interval", "50ms", "--count", "3")
	if n := strings.Count(out, "IN PKT/S"); n != 3 {
		t.Errorf("%d tables:\n%s", n, out)
	}
}

func TestDevicesOwnLossesAreShownBesideTheCounters(t *testing.T) {
	h := newHost(t)
	vm1 := h.guest("tap1", "02:00:00:00:01:01", "192.0.2.1/24")
	h.guest("tap2", "02:00:00:00:01:02", "192.0.2.2/24")
	h.guest("tap3", "02:00:00:00:01:03", "192.0.2.3/24")
	h.start("--config", h.file("heddle.yaml", statsHost))
	h.awaitPort("vm1", api.Up)
	h.awaitPort("vm2", api.Up)
	// A frame longer than what the host's end takes never comes to the switch: it is the guest's device's own loss.
	run(t, vm1, "ip link set eth0 mtu 9000")
	before := h.stats("vm1")
	if before.Device == nil || before.Device.Device != "tap1" || before.Peer == nil {
		t.Fatalf("no counters of the devices: %+v", before)
	}
	h.await("the other end's losses show", func() bool {
		// no answer is the point
		_, _ = vm1.Output("ping", "-c", "1", "-W", "0.1", "-M", "do", "-s", "4000", "192.0.2.2")
		return h.stats("vm1").Peer.TxDropped > before.Peer.TxDropped
	})
	if out := h.must("stats", "vm1"); !strings.Contains(out, "its other end, tx dropped") {
		t.Errorf("not shown:\n%s", out)
	}
}

func (h *host) stats(port string) api.Stats {
	h.t.Helper()
	var s api.Stats
	if err := json.Unmarshal([]byte(h.must("stats", port, "-o", "json")), &s); err != nil {
		h.t.Fatal(err)
	}
	return s
}
