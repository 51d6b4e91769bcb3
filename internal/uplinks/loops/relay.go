package loops

import (
	"encoding/binary"
	"maps"
	"time"

	"heddle/internal/abi"
	"heddle/internal/plan"
)

// relaysPerSecond is how many probes of other hosts are sent on for one port: a round of another host has three for
// each of its segments.
const relaysPerSecond = 16

// Relay sends on the probes of other hosts that come in by a port, out of the uplinks. A host drops probes in its
// program, its own and those of others, so that without it no host learns that its probe went through another one and
// came back over the physical network. A port that sends forgeries has them sent on as well, as it could itself, up to
// relaysPerSecond; who made a probe is checked by the host that it names, with a key that is known there alone.
type Relay struct{ ports map[plan.PortID]relayed }

// relayed is what was sent on for a port in a second.
type relayed struct {
	since time.Time
	n     int
}

// Take reports whether one more probe of the port is sent on.
func (r *Relay) Take(port plan.PortID, now time.Time) bool {
	if r.ports == nil {
		r.ports = map[plan.PortID]relayed{}
	}
	p := r.ports[port]
	if now.Sub(p.since) >= time.Second {
		p = relayed{since: now}
	}
	if p.n >= relaysPerSecond {
		return false
	}
	p.n++
	r.ports[port] = p
	return true
}

// Keep forgets the ports that are no more.
func (r *Relay) Keep(there func(plan.PortID) bool) {
	maps.DeleteFunc(r.ports, func(id plan.PortID, _ relayed) bool { return !there(id) })
}

// Other takes the payload of a probe of another host; false when it is none. first: that host is the one that blocks
// its end of a loop which both have found.
func (s *Sender) Other(p []byte) (first, ok bool) {
	if len(p) < probeLen || binary.BigEndian.Uint32(p) != abi.ProbeMagic || [16]byte(p[idAt:]) == s.ID {
		return false, false
	}
	return string(p[idAt:macAt]) > string(s.ID[:]), true
}

// Onward is the frame by which another host's probe is sent on out of an uplink: the same payload, from this host's
// address.
func (s *Sender) Onward(p []byte, vlan uint16, ad bool) []byte {
	return append(s.header(vlan, ad), p[:probeLen]...)
}
