package fleet

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/diagnose"
	"heddle/internal/diagnose/across"
	"heddle/internal/lab/netns"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
	"heddle/internal/test/testkit/realhost"
)

// segmentText is a definition with an overlay segment: each host's endpoint is the address of its own device.
const segmentText = `
switches:
- name: dvs
  tunnel: {endpoints: [{device: u0}]}
  portGroups:
  - {name: web, overlay: {vni: 5000}}
templates:
- name: all
  labels: {rack: a}
  switches: [{name: dvs}]
`

// routed gives each host a network of its own behind one router.
func (f *fleet) routed() (router *netns.NS) {
	f.t.Helper()
	router = testkit.NS(f.t, "router")
	run := func(ns *netns.NS, args ...string) {
		if out, err := ns.Output(args[0], args[1:]...); err != nil {
			f.t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	run(router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
	for n, h := range f.hosts {
		far := fmt.Sprintf("r%d", n)
		join(f.t, h.NS, "u0", router, far)
		run(h.NS, "ip", "link", "set", "u0", "mtu", "1600")
		run(router, "ip", "link", "set", far, "mtu", "1600")
		run(h.NS, "ip", "addr", "add", fmt.Sprintf("10.9.%d.2/24", n), "dev", "u0")
		run(router, "ip", "addr", "add", fmt.Sprintf("10.9.%d.1/24", n), "dev", far)
		run(h.NS, "ip", "route", "add", "10.9.0.0/16", "via", fmt.Sprintf("10.9.%d.1", n))
	}
	return router
}

// TestS105_ControllersSayWhoIsWhere: hosts of one definition learn from the controller where the others' ports are,
// without having heard a frame; what is for one host goes to that host alone; without the controller, and while agents
// start again, all of that stays.
func TestS105_ControllersSayWhoIsWhere(t *testing.T) {
	testkit.Long(t, "TestS100_S105_APortMovesOnAnOverlaySegment has what controllers tell")
	t.Parallel()
	f := newFleetSized(t, 3, ownConfig, "own1", "own2")
	f.routed()
	f.controller.Start()
	for n, h := range f.hosts {
		f.controller.Join(h.Host, fmt.Sprintf("esx%d", n), map[string]string{"rack": "a"})
	}
	if out := f.controller.Define(segmentText); len(out.Hosts) != 3 || len(out.Waiting) > 0 {
		t.Fatalf("the definition: %+v", out)
	}
	for n := range f.hosts {
		f.connect(n, 3, "p-web", "web")
	}
	between := func(from, to int) {
		t.Helper()
		a, b := fmt.Sprintf("p-web@%d", from), fmt.Sprintf("p-web@%d", to)
		frame := cable.Frame(fleetMAC(to, 3), fleetMAC(from, 3), 0, "from "+a+" to "+b)
		f.hosts[from].Await("frames come from "+a+" to "+b, func() bool {
			f.guests[a].Send(frame)
			return f.guests[b].Await(frame, realhost.Patience/20)
		})
	}
	all := func() {
		t.Helper()
		for from := range f.hosts {
			for to := range f.hosts {
				if from != to {
					between(from, to)
				}
			}
		}
	}
	all()
	f.showsSegment()
	f.tracesThroughTheTunnel()
	quiet := f.hosts[2].Counter("tunnel", "packetsInUnicast")
	stream := f.stream("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))
	f.controller.End(syscall.SIGKILL)
	for n := range 2 {
		f.hosts[n].End(syscall.SIGKILL)
		f.hosts[n].Start(fmt.Sprintf(ownConfig, n, n))
		f.hosts[n].Up("p-web")
	}
	f.whole("without a controller, while agents start again", stream)
	if got := f.hosts[2].Counter("tunnel", "packetsInUnicast"); got != quiet {
		t.Errorf("a host that none of it is for got %d frames", got-quiet)
	}
	all()
}

// showsSegment: the command says of the segment which hosts are in it, and where each guest is.
func (f *fleet) showsSegment() {
	f.t.Helper()
	var list []api.Segment
	f.controller.JSON(&list, "segment", "list")
	want := api.Segment{VNI: 5000, Switch: "dvs", PortGroups: []string{"web"}, Hosts: 3, MACs: 3}
	if len(list) != 1 || !reflect.DeepEqual(list[0], want) {
		f.t.Errorf("the segments: %+v, want %+v", list, want)
	}
	var web api.SegmentDetail
	f.controller.JSON(&web, "segment", "show", "web")
	for n := range f.hosts {
		host, at := fmt.Sprintf("esx%d", n), fmt.Sprintf("10.9.%d.2", n)
		mac := plan.MAC(fleetMAC(n, 3)).String()
		if !slices.ContainsFunc(web.Members, func(m api.SegmentMember) bool {
			return m.Host == host && m.Connected && len(m.At) == 1 && m.At[0].Address == at && m.At[0].MTU == 1600
		}) {
			f.t.Errorf("host %s with its endpoint %s: %+v", host, at, web.Members)
		}
		if !slices.ContainsFunc(web.Locations, func(l api.SegmentLocation) bool {
			return l.Key == mac && l.Host == host && l.Endpoint == at && l.Source == api.SegmentPort
		}) {
			f.t.Errorf("%s behind %s: %+v", mac, host, web.Locations)
		}
	}
	var one api.SegmentDetail
	f.controller.JSON(&one, "segment", "show", "dvs/web", "--host", "esx1")
	if len(one.Locations) != 1 || one.Locations[0].Host != "esx1" {
		f.t.Errorf("of one host: %+v", one.Locations)
	}
}

// tracesThroughTheTunnel: a trace from a guest of one host to a guest of another is one story, with the packets between
// them, and says which host the frame does not come to.
func (f *fleet) tracesThroughTheTunnel() {
	f.t.Helper()
	for _, args := range [][]string{{"trace", "esx0:p-web", "esx1:p-web"},
		{"trace", "esx0:p-web", "esx1:p-web", "--icmp", "--ip", "10.0.0.1,10.0.0.2"}} {
		var s across.Story
		f.controller.JSON(&s, args...)
		want := "esx0:p-web reaches esx1:p-web, if the physical network carries VXLAN from 10.9.0.2 to 10.9.1.2, " +
			"which is not known"
		if s.Answer.Verdict != diagnose.Yes || s.Answer.Text != want || !s.Agree {
			f.t.Errorf("%v: %+v, agree: %v", args, s.Answer, s.Agree)
		}
		last := s.Legs[len(s.Legs)-1]
		if o := last.Outer; o == nil || o.VNI != 5000 || o.Host != last.To.Host || o.Known != "announced" {
			f.t.Errorf("%v: the packet %+v", args, o)
		}
	}
	out, errs, status := f.controller.Heddle("trace", "esx0:p-web", "esx1:p-web", "--length", "1550")
	if status != 1 || !strings.Contains(out, "mtu-exceeded") {
		f.t.Errorf("status %d: %s%s", status, out, errs)
	}
}
