package model

import (
	"slices"

	"heddle/internal/plan"
	"heddle/internal/spec"
)

// path is an entry of a team's lists: one of the two fields is set, or none for a name that is not in the plan.
type path struct {
	uplink *uplink
	lag    *lag
}

// lag is a LAG under the present plan and facts.
type lag struct {
	*plan.LAG
	members []*uplink
}

// found reports whether a walk found a path.
func (p path) found() bool { return p != path{} }

// usable: a LAG is usable when one of its members is (S52).
func (p path) usable() bool {
	if p.lag != nil {
		return slices.ContainsFunc(p.lag.members, (*uplink).usable)
	}
	return p.uplink.usable()
}

func (p path) name() string {
	switch {
	case p.lag != nil:
		return p.lag.Name
	case p.uplink != nil:
		return p.uplink.ID.Name
	}
	return ""
}

// takes reports whether frames that come in on an uplink come in by this path.
func (p path) takes(u *uplink) bool {
	if p.lag != nil {
		return slices.Contains(p.lag.members, u)
	}
	return p.uplink == u
}

// choose is what a port's team selects (S42, S44–S47, D10; frame-rules §4). source is the MAC that source-mac hashes.
func choose(p *port, f *header, source plan.MAC) path {
	h := teamHash(p, f, source)
	awake := func(e path) bool { return e.usable() && !slices.Contains(p.fact.Resting, e.name()) }
	if e := walk(p, h, awake); e.found() {
		return e
	}
	return walk(p, h, path.usable) // S44: a resting one is better than none
}

// walk goes through a team's lists; usable decides which entries are usable.
func walk(p *port, h uint32, usable func(path) bool) path {
	switch p.teaming() {
	case spec.ExplicitOrder:
		if e := first(p.active, usable); e.found() {
			return e
		}
		return first(p.standby, usable)
	case spec.LoadBased: // S47
		for _, e := range p.active {
			if e.found() && e.name() == p.fact.Assigned && usable(e) {
				return e
			}
		}
	}
	var room [16]path
	if e := hashed(append(room[:0], p.active...), h, usable); e.found() {
		return e
	}
	return first(p.standby, usable) // S45
}

// hashed takes entry h mod n and removes unusable ones one after the other. It changes the list.
func hashed[T any](left []T, h uint32, usable func(T) bool) (none T) {
	for len(left) > 0 {
		i := int(h % uint32(len(left)))
		if usable(left[i]) {
			return left[i]
		}
		left = append(left[:i], left[i+1:]...)
	}
	return none
}

func first(list []path, usable func(path) bool) path {
	for _, e := range list {
		if usable(e) {
			return e
		}
	}
	return path{}
}

func teamHash(p *port, f *header, source plan.MAC) uint32 {
	switch p.teaming() {
	case spec.SourceMAC: // D10
		return uint32(source[5])
	case spec.IPHash: // S46
		return uint32(ipHash(f))
	default: // S42, D10
		return p.Number
	}
}

// ipHash is the exclusive or of the last bytes of the IP addresses, or of the bytes at their positions in a frame
// without IP.
func ipHash(f *header) byte {
	if p := f.packet; p.version != 0 {
		return p.src[len(p.src)-1] ^ p.dst[len(p.dst)-1]
	}
	return f.payloadByte(29) ^ f.payloadByte(33)
}
