package span

import (
	"slices"

	"heddle/internal/plan"
)

// Hosts of the version before know no VLANs inside a VNI: to them, a MAC is at one host in the whole of it, and an
// address is in the untagged VLAN. They are told where a MAC is if it is at the same host in all VLANs; one that is at
// several hosts they are told nothing of, so that they send frames for it to all hosts of the segment.

// olderPlace is where a MAC or an address is to them.
func (s *segment) olderPlace(k Key) (c claim, ok bool) {
	c, ok = s.places[k]
	mac, isMAC := k.MAC()
	if !isMAC {
		return c, ok
	}
	for _, vlan := range s.inside[mac] {
		other := s.places[k.In(vlan)]
		switch {
		case !ok:
			c, ok = other, true
		case c.host != other.host:
			return claim{}, false
		}
	}
	return c, ok
}

// olderSum is what a key adds to the hash of what they know.
func (s *segment) olderSum(t *Table, k Key) (h Hash) {
	k = k.In(0)
	if c, ok := s.olderPlace(k); ok {
		l := t.located(c)
		_, h = l.sums(k)
	}
	return h
}

// place is where a MAC or an address is; older: to a host of the version before.
func (s *segment) place(k Key, older bool) (claim, bool) {
	if older {
		return s.olderPlace(k)
	}
	c, ok := s.places[k]
	return c, ok
}

// keys are those that a host is told of, in no order.
func (s *segment) keys(older bool) (list []Key) {
	list = make([]Key, 0, len(s.places))
	for k := range s.places {
		if !older || k.vlan == 0 {
			list = append(list, k)
		}
	}
	if !older {
		return list
	}
	for mac := range s.inside {
		if _, is := s.places[MACKey(mac)]; !is {
			list = append(list, MACKey(mac))
		}
	}
	return list
}

// note notes in which VLANs inside the VNI a MAC is located.
func (in *inside) note(k Key, is bool) {
	mac, isMAC := k.MAC()
	if !isMAC || k.vlan == 0 {
		return
	}
	list := (*in)[mac]
	at, has := slices.BinarySearch(list, k.vlan)
	switch {
	case is == has:
		return
	case is:
		list = slices.Insert(slices.Clone(list), at, k.vlan)
	default:
		list = slices.Delete(slices.Clone(list), at, at+1)
	}
	if *in == nil {
		*in = inside{}
	}
	if (*in)[mac] = list; len(list) == 0 {
		delete(*in, mac)
	}
	if len(*in) == 0 {
		*in = nil
	}
}

// inside are the VLANs inside a VNI in which each MAC is located, in order.
type inside map[plan.MAC][]uint16
