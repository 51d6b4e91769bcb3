package controlplane

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"time"

	"heddle/internal/agent/segments"
	"heddle/internal/overlay"
	"heddle/internal/overlay/span"
	"heddle/internal/plan"
)

// locatingHost is a simulated host's part in overlay segments: the agent's own keeper, and a kernel that only notes
// when the location of one MAC came.
type locatingHost struct {
	*segments.Keeper
	own map[span.VNI]map[span.Key]span.Claim // what is behind its ports; it is not changed

	mu    sync.Mutex
	watch overlay.Key
	at    netip.Addr // the endpoint that is waited for
	came  time.Time  // zero until it does
}

// newLocatingHost makes the part of one host.
func newLocatingHost(h *host) *locatingHost {
	l := &locatingHost{}
	l.Keeper = segments.New(segments.Options{Dir: "/nonexistent", Log: slog.New(slog.DiscardHandler),
		Self: func() string { return h.record.Host() }, Changed: l.take})
	return l
}

// take tells the kernel what there is not: what has changed, and when that was.
func (l *locatingHost) take() {
	c := l.Take()
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range c.Put {
		if c.Put[i].Key == l.watch && c.Put[i].Endpoint == l.at && l.came.IsZero() {
			l.came = now
		}
	}
}

// expect begins to wait for a location.
func (l *locatingHost) expect(key overlay.Key, at netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watch, l.at, l.came = key, at, time.Time{}
}

func (l *locatingHost) cameAt() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.came
}

// endpointOf is where a host's tunnel ends.
func endpointOf(number int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, byte(number >> 8), byte(number)})
}

// macOf is the MAC of a guest of a host.
func macOf(number, guest int) plan.MAC {
	return plan.MAC{2, byte(number >> 8), byte(number), byte(guest >> 16), byte(guest >> 8), byte(guest)}
}

// shape is which segments there are, and who is in them.
type shape struct{ hosts, racks, perRack, members int }

func (o Options) shapeFor(hosts int) shape {
	racks := (hosts + hostsPerRack - 1) / hostsPerRack
	return shape{hosts: hosts, racks: racks, perRack: max(1, o.Locations/macsPerSegment/racks),
		members: min(segmentHosts, hosts/racks)}
}

// vni is that of a segment of a rack.
func (s shape) vni(rack, segment int) span.VNI { return span.VNI(1000 + rack*s.perRack + segment) }

// inRack are the hosts of a rack: every racks-th one.
func (s shape) inRack(rack int) int { return (s.hosts - rack + s.racks - 1) / s.racks }

// fill says what is behind the ports of each host.
func (s shape) fill(all []*host) (macs int) {
	next := make([]int, len(all))
	add := func(number int, vni span.VNI) {
		l := all[number].locating
		if l.own[vni] == nil {
			l.own[vni] = map[span.Key]span.Claim{}
		}
		l.own[vni][span.MACKey(macOf(number, next[number]))] = span.Claim{Source: span.Learned, Since: 1}
		next[number]++
		macs++
	}
	for _, h := range all {
		h.locating.own = map[span.VNI]map[span.Key]span.Claim{}
		add(h.number, wideVNI)
	}
	for rack := range s.racks {
		n := s.inRack(rack)
		for segment := range s.perRack {
			for i := range macsPerSegment {
				in := (segment*s.members + i%s.members) % n
				add(in*s.racks+rack, s.vni(rack, segment))
			}
		}
	}
	return macs
}

// text is the definition: a switch for each rack with port groups of its segments, and one of all hosts.
func (s shape) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "switches:\n- name: wide\n  tunnel: {endpoints: [{device: eth1}]}\n  portGroups:\n  - {name: "+
		"wide, overlay: {vni: %d}}\n", wideVNI)
	for rack := range s.racks {
		fmt.Fprintf(&b, "- name: dvs%d\n  tunnel: {port: %d, endpoints: [{device: eth2}]}\n  portGroups:\n", rack,
			4790+rack)
		for segment := range s.perRack {
			fmt.Fprintf(&b, "  - {name: s%[1]d-%[2]d, overlay: {vni: %[3]d}}\n", rack, segment, s.vni(rack, segment))
		}
	}
	b.WriteString("templates:\n")
	for rack := range s.racks {
		fmt.Fprintf(&b, "- {name: %[1]s, labels: {rack: %[1]s}, switches: [{name: wide}, {name: dvs%[2]d}]}\n",
			rackNumbered(rack), rack)
	}
	return b.String()
}
