package loops

import (
	"encoding/binary"
	"maps"
	"time"

	"heddle/internal/abi"
	"heddle/internal/plan"
)

// relaysPerSecond is how many probes of other hosts are forwarded for one port in a second: a round of another host has
// three for each of its segments.
const relaysPerSecond = 16

// Relay limits the forwarding of other hosts' probes that a port receives, out of the uplinks. A host drops all probes
// in its program, so that without forwarding no host learns that its probe went through another one and came back over
// the physical network. Forgeries that a port sends are forwarded as well, up to relaysPerSecond; the port's guest
// could send them itself. Only the host that a probe names can check who made it, because only that host has the key.
type Relay struct{ ports map[plan.PortID]relayed }

// relayed is the number of probes forwarded for a port in a second.
type relayed struct {
	since time.Time
	n     int
}

// Take reports whether one more probe of the port may be forwarded.
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

// Keep removes the ports that no longer exist.
func (r *Relay) Keep(there func(plan.PortID) bool) {
	maps.DeleteFunc(r.ports, func(id plan.PortID, _ relayed) bool { return !there(id) })
}

// Other reads the payload of a probe of another host; ok is false if it is none. first: of two hosts that both find a
// loop, that host blocks its end first.
func (s *Sender) Other(p []byte) (first, ok bool) {
	if len(p) < probeLen || binary.BigEndian.Uint32(p) != abi.ProbeMagic || [16]byte(p[idAt:]) == s.ID {
		return false, false
	}
	return string(p[idAt:macAt]) > string(s.ID[:]), true
}

// Onward returns the frame that forwards another host's probe out of an uplink: the same payload, from this host's
// address.
func (s *Sender) Onward(p []byte, vlan uint16, ad bool) []byte {
	return append(s.header(vlan, ad), p[:probeLen]...)
}
