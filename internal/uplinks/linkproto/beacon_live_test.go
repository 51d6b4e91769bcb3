package linkproto_test

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/observe/event"
	"heddle/internal/test/testkit"
)

// threeWays is a host whose port vmk0 (192.0.2.1) reaches the physical network, a bridge with the station 192.0.2.2, by
// three uplinks:
//
//	          ╔═ w0 ═╗
//	vmk0 ─ lab ═ w1 ═ br0 ─ station
//	          ╚═ w2 ═╝
func threeWays(t *testing.T, uplinks int, vlan string) (h *host, net func(command string)) {
	testkit.Tool(t, "ping", "ip")
	h = newHost(t, "beacon")
	network := testkit.NS(t, "net")
	net = func(command string) { run(t, network, command) }
	wires(t, h.ns, network, uplinks)
	net("ip link add br0 up address 02:00:00:00:00:20 type bridge") // else it takes that of a port
	names := ""
	for i := range uplinks {
		net(fmt.Sprintf("ip link set w%d master br0", i))
		names += fmt.Sprintf("      - {name: up%d, device: w%d}\n", i, i)
	}
	net("ip addr add 192.0.2.2/24 dev br0")
	h.start(fmt.Sprintf(`switches:
  - name: lab
    uplinks:
%s    portGroups:
      - {name: hosts, vlan: %s, teaming: {policy: explicit, failureDetection: beacon}}
ports:
  - {name: vmk0, switch: lab, portGroup: hosts, role: host, mac: "02:00:00:00:00:10", addresses: [192.0.2.1/24]}
`, names, vlan))
	return h, net
}

// pings sends n pings to the station, 50 ms apart, and returns how many were answered.
func (h *host) pings(n int) int {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, "ping", "-q", "-n", "-i", "0.05", "-W", "1", "-c", fmt.Sprint(n), "192.0.2.2")
	var out strings.Builder
	c.Stdout = &out
	if err := h.ns.Start(c); err != nil {
		h.t.Fatal(err)
	}
	_ = c.Wait() // a lost ping is an exit status
	var sent, got int
	if m := regexp.MustCompile(`\d+ packets transmitted, \d+ received`).FindString(out.String()); m != "" {
		if _, err := fmt.Sscanf(m, "%d packets transmitted, %d received", &sent, &got); err != nil {
			h.t.Fatal(err)
		}
	}
	return got
}

func (h *host) leavesBy() string {
	h.t.Helper()
	s, err := h.State(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.Join(s.Ports[0].Uplinks, " ")
}

// told reports whether the agent has published a failover event with that text.
func (h *host) told(text string) bool {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	defer cancel()
	found := false
	err := h.Events(ctx, api.Follow{Last: 1000, NoFollow: true}, func(e api.Events) error {
		for _, x := range e.Events {
			found = found || x.Kind == event.Failover && strings.Contains(x.Text, text)
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return found
}

// An uplink whose link stays up while the physical network behind it is gone is taken out of use, and traffic continues
// on the next one; the uplink is used again when the network works. The same holds across a restart of the agent.
func TestS51_AnUplinkThatLosesItsNetworkSilentlyIsTakenOut(t *testing.T) {
	testkit.Long(t, "waits for beacons to be missed; TestS51_BeaconsAreHeardInTheirVLAN has beacons")
	t.Parallel()
	h, net := threeWays(t, 3, "{none: true}")
	h.await("the host reaches the station", func() bool { return h.pings(1) == 1 })
	if by := h.leavesBy(); by != "up0" {
		t.Fatalf("leaves by %s", by)
	}
	net("ip link set w0 nomaster") // the carrier stays
	h.await("up0 is out", func() bool { return h.uplink("up0").State == api.Out })
	if u := h.uplink("up0"); !strings.Contains(u.Reason, "no beacon of another uplink arrives on it") {
		t.Errorf("reason: %s", u.Reason)
	}
	if by := h.leavesBy(); by != "up1" {
		t.Errorf("leaves by %s", by)
	}
	h.await("the station is reached by up1", func() bool { return h.pings(10) == 10 })
	if !h.told("uplink up0 is taken out of use") {
		t.Error("no event tells of it")
	}
	h.end(syscall.SIGKILL)
	h.start("")
	h.await("up0 is out again", func() bool { return h.uplink("up0").State == api.Out })
	net("ip link set w0 master br0")
	h.await("up0 is used again", func() bool { return h.uplink("up0").State == api.Up && h.leavesBy() == "up0" })
	h.await("the station is reached by up0", func() bool { return h.pings(10) == 10 })
}

// With two uplinks it is unknown which of them is cut off.
func TestS51_OfTwoUplinksBothStayInUse(t *testing.T) {
	t.Parallel()
	h, net := threeWays(t, 2, "{none: true}")
	h.await("the host reaches the station", func() bool { return h.pings(1) == 1 })
	net("ip link set w1 nomaster")
	h.await("an event reports that it is not clear", func() bool { return h.told("it is unknown which is at fault") })
	for _, name := range []string{"up0", "up1"} {
		if u := h.uplink(name); u.State != api.Up {
			t.Errorf("%s is %s: %s", name, u.State, u.Reason)
		}
	}
	if n := h.pings(5); n != 5 {
		t.Errorf("%d of 5 pings answered", n)
	}
}

// Beacons are sent in the VLANs of the ports, and received there although the kernel removes the tag.
func TestS51_BeaconsAreHeardInTheirVLAN(t *testing.T) {
	t.Parallel()
	h, net := threeWays(t, 3, "{access: 10}")
	net("ip link set w2 nomaster")
	h.await("up2 is out", func() bool { return h.uplink("up2").State == api.Out })
	net("ip link set w2 master br0")
	h.await("up2 is used again", func() bool { return h.uplink("up2").State == api.Up })
}
