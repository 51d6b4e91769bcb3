package fleet

import (
	"fmt"
	"strings"
	"testing"

	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
	"heddle/internal/test/testkit/realhost"
)

// secondNetwork gives each host another way to the router.
func (f *fleet) secondNetwork(router *netns.NS) {
	f.t.Helper()
	for n, h := range f.hosts {
		far := fmt.Sprintf("q%d", n)
		join(f.t, h.NS, "u1", router, far)
		f.run(h.NS, "ip", "link", "set", "u1", "mtu", "1600")
		f.run(router, "ip", "link", "set", far, "mtu", "1600")
		f.run(h.NS, "ip", "addr", "add", fmt.Sprintf("10.8.%d.2/24", n), "dev", "u1")
		f.run(router, "ip", "addr", "add", fmt.Sprintf("10.8.%d.1/24", n), "dev", far)
		f.run(h.NS, "ip", "route", "add", "10.8.0.0/16", "via", fmt.Sprintf("10.8.%d.1", n))
	}
}

func (f *fleet) run(ns *netns.NS, args ...string) {
	f.t.Helper()
	if out, err := ns.Output(args[0], args[1:]...); err != nil {
		f.t.Fatalf("%v: %v: %s", args, err, out)
	}
}

// bothWays are streams between the guests of the first two hosts.
type bothWays struct {
	f      *fleet
	stream [2]*cable.Stream
}

func (f *fleet) bothWays() *bothWays {
	return &bothWays{f, [2]*cable.Stream{f.stream("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3)),
		f.stream("p-web@1", "p-web@0", fleetMAC(1, 3), fleetMAC(0, 3))}}
}

// end says how many milliseconds each way was silent: a frame is sent in each. What comes after that must not be lost.
func (b *bothWays) end(what string) {
	b.f.t.Helper()
	for i, s := range b.stream {
		sent, received := s.Stop()
		b.f.t.Logf("%s, from host %d: %d of %d frames lost, one a millisecond", what, i, sent-received, sent)
		if received == 0 {
			b.f.t.Errorf("%s, from host %d: no frame came", what, i)
		}
	}
}

// carries waits until frames go from each guest to the other.
func (f *fleet) carries(what string) {
	f.t.Helper()
	for from := range 2 {
		frame := cable.Frame(fleetMAC(1-from, 3), fleetMAC(from, 3), 0, what)
		f.hosts[from].Await(fmt.Sprintf("%s: frames come from host %d", what, from), func() bool {
			f.guests[fmt.Sprintf("p-web@%d", from)].Send(frame)
			return f.guests[fmt.Sprintf("p-web@%d", 1-from)].Await(frame, realhost.Patience/20)
		})
	}
}

// TestS105_EndpointsFailAndChangeUnderTraffic: while guests of two hosts send each other numbered frames, an endpoint
// loses its link and gets it back, and another gets a new address. Each time the hosts find each other again, by what
// the controller tells them.
func TestS105_EndpointsFailAndChangeUnderTraffic(t *testing.T) {
	testkit.Long(t, "streams while endpoints fail; TestS100_S105_APortMovesOnAnOverlaySegment has what controllers "+
		"tell")
	t.Parallel()
	f := newFleetSized(t, 2, ownConfig, "own1", "own2")
	router := f.routed()
	f.secondNetwork(router)
	f.controller.Start()
	for n, h := range f.hosts {
		f.run(h.NS, "sysctl", "-qw", "net.ipv4.conf.u0.promote_secondaries=1")
		f.controller.Join(h.Host, fmt.Sprintf("esx%d", n), map[string]string{"rack": "a"})
	}
	text := strings.Replace(segmentText, "[{device: u0}]", "[{device: u0}, {device: u1}]", 1)
	if out := f.controller.Define(text); len(out.Hosts) != 2 || len(out.Waiting) > 0 {
		t.Fatalf("the definition: %+v", out)
	}
	for n := range f.hosts {
		f.connect(n, 3, "p-web", "web")
	}
	f.carries("at first")
	for _, step := range []struct {
		what string
		do   [][]string
	}{
		{"an endpoint's link fails", [][]string{{"ip", "link", "set", "u0", "down"}}},
		{"the link is back", [][]string{{"ip", "link", "set", "u0", "up"},
			{"ip", "route", "replace", "10.9.0.0/16", "via", "10.9.1.1"}}},
		{"an endpoint has another address", [][]string{{"ip", "addr", "add", "10.9.1.3/24", "dev", "u0"},
			{"ip", "addr", "del", "10.9.1.2/24", "dev", "u0"}}},
	} {
		t.Run(step.what, func(t *testing.T) {
			// What the router still has for an endpoint without a link would come among what is sent from now on.
			f.run(router, "ip", "neigh", "flush", "all")
			b := f.bothWays()
			for _, args := range step.do {
				f.run(f.hosts[1].NS, args...)
			}
			f.hosts[0].Await(step.what+": the other host counts frames of the streams again", f.flowing())
			b.end(step.what)
			f.carries("after " + step.what)
		})
	}
	list := f.hosts[1].must("uplink", "list")
	if strings.Contains(list, "no-endpoint") {
		t.Errorf("in the end an endpoint is missing:\n%s", list)
	}
}

// flowing reports whether both hosts deliver frames from their tunnels: more than a hundred since it was asked first.
func (f *fleet) flowing() func() bool {
	var first []uint64
	return func() bool {
		flows := true
		for n := range 2 {
			now := f.hosts[n].Counter("p-web", "packetsOutUnicast")
			if len(first) <= n {
				first = append(first, now)
			}
			flows = flows && now > first[n]+100
		}
		return flows
	}
}
