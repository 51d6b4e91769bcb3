package plan

import (
	"fmt"
	"iter"
	"math/bits"
	"net"
	"strings"
)

// MAC is an Ethernet address.
type MAC [6]byte

// ParseMAC reads a 6-byte address in any of Go's notations.
func ParseMAC(s string) (MAC, error) {
	hw, err := net.ParseMAC(s)
	if err != nil || len(hw) != 6 {
		return MAC{}, fmt.Errorf("%q is not a MAC address such as 02:00:00:00:01:01", s)
	}
	return MAC(hw), nil
}

func (m MAC) String() string { return net.HardwareAddr(m[:]).String() }

// MarshalText writes the address as text, so that it can be a JSON or YAML value and key.
func (m MAC) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (m *MAC) UnmarshalText(b []byte) error {
	p, err := ParseMAC(string(b))
	*m = p
	return err
}

// IsGroup reports whether the address is broadcast or multicast.
func (m MAC) IsGroup() bool { return m[0]&1 == 1 }

// IsBroadcast reports whether the address is ff:ff:ff:ff:ff:ff.
func (m MAC) IsBroadcast() bool { return m == MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff} }

// IsZero reports whether the address is 00:00:00:00:00:00.
func (m MAC) IsZero() bool { return m == MAC{} }

// VLANSet is a set of VLAN ids 0–4094; 0 stands for untagged frames.
type VLANSet [64]uint64

// AllVLANs returns the default of an uplink: 0–4094.
func AllVLANs() VLANSet {
	var s VLANSet
	s.AddRange(0, 4094)
	return s
}

// AddRange adds the ids lo to hi, both within 0–4094.
func (s *VLANSet) AddRange(lo, hi uint16) {
	for v := lo; v <= hi && v < 4095; v++ {
		s[v/64] |= 1 << (v % 64)
	}
}

// Count returns how many ids are in the set.
func (s *VLANSet) Count() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// Has reports whether the set has id; it never has ids above 4095.
func (s *VLANSet) Has(id uint16) bool { return id < 4096 && s[id/64]&(1<<(id%64)) != 0 }

// All lists the ids of the set, in order.
func (s *VLANSet) All() iter.Seq[uint16] {
	return func(yield func(uint16) bool) {
		for i, w := range s {
			for ; w != 0; w &= w - 1 {
				if !yield(uint16(64*i + bits.TrailingZeros64(w))) {
					return
				}
			}
		}
	}
}

// String writes the set as ranges: "0,10-20".
func (s VLANSet) String() string {
	var parts []string
	for _, r := range s.Ranges() {
		if r.First == r.Last {
			parts = append(parts, fmt.Sprint(r.First))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", r.First, r.Last))
		}
	}
	return strings.Join(parts, ",")
}
