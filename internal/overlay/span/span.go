package span

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"

	"heddle/internal/plan"
)

// VNI is a segment's number in the tunnel's header: 1 to 16777214.
type VNI uint32

// Valid reports whether a segment can have the number.
func (v VNI) Valid() bool { return v >= 1 && v <= 1<<24-2 }

// Key is what is located: a MAC or an IP address of a segment, in one tagged VLAN inside it or in none in particular.
type Key struct {
	kind  byte
	bytes [16]byte
	vlan  uint16 // 0 = none in particular
}

// Kinds of keys. The values are part of what is hashed on both sides.
const (
	isMAC  byte = 'M'
	isIPv4 byte = '4'
	isIPv6 byte = '6'
)

// MACKey is that of a MAC.
func MACKey(mac plan.MAC) Key {
	k := Key{kind: isMAC}
	copy(k.bytes[:], mac[:])
	return k
}

// AddressKey is that of an IP address. The zero key is that of an invalid one.
func AddressKey(a netip.Addr) Key {
	a = a.Unmap()
	switch {
	case a.Is4():
		k := Key{kind: isIPv4}
		four := a.As4()
		copy(k.bytes[:], four[:])
		return k
	case a.Is6():
		return Key{kind: isIPv6, bytes: a.As16()}
	}
	return Key{}
}

// In is the key of the same MAC or address in a VLAN inside the VNI, 1 to 4094. With 0 it is that of no VLAN in
// particular: of a MAC in the untagged VLAN (Claim.Untagged) or in all of them, and of an address in the untagged one.
func (k Key) In(vlan uint16) Key {
	k.vlan = vlan
	return k
}

// VLAN is the tagged VLAN inside the VNI, 0 for none in particular.
func (k Key) VLAN() uint16 { return k.vlan }

// ParseKey reads a key as Bytes wrote it; its length says what it is.
func ParseKey(b []byte) (Key, error) {
	switch len(b) {
	case 6:
		return MACKey(plan.MAC(b)), nil
	case 4:
		return AddressKey(netip.AddrFrom4([4]byte(b))), nil
	case 16:
		if a := netip.AddrFrom16([16]byte(b)); !a.Is4In6() {
			return AddressKey(a), nil
		}
	}
	return Key{}, fmt.Errorf("%x is neither a MAC nor an IP address", b)
}

// KeyNamed reads a MAC or an IP address as people write it.
func KeyNamed(text string) (Key, error) {
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		return AddressKey(a.Unmap()), nil
	}
	mac, err := plan.ParseMAC(text)
	if err != nil {
		return Key{}, fmt.Errorf("%q is neither a MAC nor an IP address", text)
	}
	return MACKey(mac), nil
}

// Bytes are the MAC's 6 bytes, or the address's 4 or 16.
func (k Key) Bytes() []byte {
	switch k.kind {
	case isMAC:
		return k.bytes[:6]
	case isIPv4:
		return k.bytes[:4]
	case isIPv6:
		return k.bytes[:]
	}
	return nil
}

// MAC is the MAC; false for an address.
func (k Key) MAC() (plan.MAC, bool) { return plan.MAC(k.bytes[:6]), k.kind == isMAC }

// Address is the IP address; false for a MAC.
func (k Key) Address() (netip.Addr, bool) {
	switch k.kind {
	case isIPv4:
		return netip.AddrFrom4([4]byte(k.bytes[:4])), true
	case isIPv6:
		return netip.AddrFrom16(k.bytes), true
	}
	return netip.Addr{}, false
}

// String is the MAC or the address as people write it.
func (k Key) String() string {
	if mac, ok := k.MAC(); ok {
		return mac.String()
	}
	a, _ := k.Address()
	return a.String()
}

// Compare orders keys: IPv4 addresses, IPv6 addresses, MACs; of one of these, by VLAN.
func (k Key) Compare(o Key) int {
	if k.kind != o.kind {
		return int(k.kind) - int(o.kind)
	}
	for i := range k.bytes {
		if k.bytes[i] != o.bytes[i] {
			return int(k.bytes[i]) - int(o.bytes[i])
		}
	}
	return int(k.vlan) - int(o.vlan)
}

// Source is how a host knows what it reports. A higher one counts more.
type Source uint8

// Sources.
const (
	// Learned behind a port, from frames: a nested guest's MAC, or an address that ARP or ND announced.
	Learned Source = 1
	// Port: the MAC is that of the port itself.
	Port Source = 2
)

func (s Source) String() string {
	switch s {
	case Port:
		return "port"
	case Learned:
		return "learned"
	}
	return fmt.Sprintf("source %d", uint8(s))
}

// Claim is a host's word that a MAC or an address is behind one of its ports.
type Claim struct {
	Source Source
	// Untagged: a MAC of no tagged VLAN is in the untagged one alone. Otherwise it may be in any: it is the own MAC of
	// a trunk port, or the host does not know VLANs inside a VNI.
	Untagged bool
	// Owner is the MAC that an address belongs to; zero where the key is a MAC.
	Owner plan.MAC
	// Generation is that of the port (S100): it rises on whatever host the guest begins to run. 0 where the port has
	// none, and for what is learned.
	Generation uint64
	// Order rises with each claim, over all controllers: of two claims the later has the higher one. 0 for one that no
	// controller has numbered yet.
	Order uint64
	// Since is when the host noticed it, in ms since 1970 by the host's clock; of an address, when its owner was
	// heard. People are shown it, and an address counts no more when that is too long ago.
	Since int64
}

// Same reports whether two claims of one host say the same.
func (c Claim) Same(o Claim) bool { return c.alike(o) && c.Untagged == o.Untagged }

// alike is Same for a claim that may have come by who does not know VLANs inside a VNI.
func (c Claim) alike(o Claim) bool {
	return c.Source == o.Source && c.Owner == o.Owner && c.Generation == o.Generation
}

// Endpoint is an address at which a host takes the frames of its segments.
type Endpoint struct {
	Address netip.Addr
	// MTU of the underlay there, in bytes, IP header included.
	MTU uint32
	// Down: it takes no frames at present, as none of its uplinks is up.
	Down bool
}

// Host is a host of a span as others are told of it.
type Host struct {
	ID        string
	Name      string
	Endpoints []Endpoint
}

// EndpointFor is the endpoint that takes the frames for a key: of those that are up each takes a share, the same on all
// hosts that ask. False where none is up.
func (h *Host) EndpointFor(k Key) (Endpoint, bool) {
	up := make([]Endpoint, 0, len(h.Endpoints))
	for _, e := range h.Endpoints {
		if !e.Down {
			up = append(up, e)
		}
	}
	if len(up) == 0 {
		return Endpoint{}, false
	}
	n := uint32(0)
	for _, b := range k.bytes {
		n = n*31 + uint32(b)
	}
	return up[n%uint32(len(up))], true
}

// Located is where a MAC or an address is: on the host whose claim counts most.
type Located struct {
	Host string // its id
	Claim
}

// Hash is that of a segment's content. It is the sum of the hashes of its parts, so that a change costs no more than
// the parts that change, in whatever order changes come.
type Hash [2]uint64

// Bytes are the hash's.
func (h Hash) Bytes() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, h[0]), h[1])
}

// ParseHash reads a hash; false for one of another length.
func ParseHash(b []byte) (h Hash, ok bool) {
	if len(b) != 16 {
		return h, false
	}
	return Hash{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}, true
}

func (h *Hash) add(o Hash)    { h[0] += o[0]; h[1] += o[1] }
func (h *Hash) remove(o Hash) { h[0] -= o[0]; h[1] -= o[1] }

// sumOf hashes one part of a segment's content.
func sumOf(part []byte) Hash {
	s := sha256.Sum256(part)
	return Hash{binary.BigEndian.Uint64(s[:]), binary.BigEndian.Uint64(s[8:])}
}

// sums of a location: the second one for who does not know VLANs inside a VNI, if the key is of none in particular. All
// but Since counts, by which nothing is decided.
func (l *Located) sums(k Key) (h, older Hash) {
	h = l.sum(k)
	older = h
	if l.Untagged {
		h[0], h[1] = bits.RotateLeft64(h[0], 1), ^h[1]
	}
	return h, older
}

func (l *Located) sum(k Key) Hash {
	b := make([]byte, 0, 96)
	b = append(append(b, k.kind, byte(l.Source)), k.bytes[:]...)
	b = append(b, l.Owner[:]...)
	b = binary.BigEndian.AppendUint64(b, l.Generation)
	b = binary.BigEndian.AppendUint64(b, l.Order)
	if k.vlan != 0 {
		b = append(b, byte(k.vlan>>8), byte(k.vlan))
	}
	return sumOf(append(b, l.Host...))
}

// sum of a member.
func (h *Host) sum() Hash {
	b := binary.BigEndian.AppendUint32([]byte{'H'}, uint32(len(h.ID)))
	b = append(b, h.ID...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(h.Name)))
	b = append(b, h.Name...)
	for _, e := range h.Endpoints {
		a := e.Address.As16()
		b = append(b, byte(e.Address.BitLen()))
		b = append(b, a[:]...)
		b = binary.BigEndian.AppendUint32(b, e.MTU)
		if e.Down {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	return sumOf(b)
}
