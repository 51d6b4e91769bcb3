package fabric

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	"heddle/internal/plan"
)

// EtherType of probes, that of beacons: VDS's health check uses it as well.
const EtherType = 0x8922

// The payload of a probe and of its echo, all integers big-endian. What follows is padding up to the length.
//
//	 0  4  magic "HdlH"
//	 4  1  version, 1
//	 5  1  kind: 1 probe, 2 echo; plus 0x80 in a probe whose sender hears the echoes; of a benchmark 3 load, 4 ping,
//	       5 pong
//	 6  2  VLAN in which it is sent, 0 = untagged
//	 8  2  length of the packet, in bytes of layer 3
//	10  2  0
//	12  4  number of the key
//	16  8  number of the probe
//	24  8  when it was sent, in ns, by a clock that only its sender knows; in a benchmark the benchmark's number
//	32 16  the uplink that sent the probe
//	48 16  the uplink for which it is
//	64 16  HMAC-SHA256 of everything before, cut to 16 bytes
const (
	magic   = 0x48646c48 // "HdlH"
	version = 1
	signed  = 64
	macLen  = 16
	// Shortest is the length of the shortest probe, in bytes of layer 3.
	Shortest = signed + macLen
	// Longest is that of the longest.
	Longest = 9216
)

const (
	kindProbe = 1
	kindEcho  = 2
	hears     = 0x80
)

// kindAt is where the kind is in the payload.
const kindAt = 5

// Purpose is what a probe is for.
type Purpose uint8

// The purposes. All but Checks are of a benchmark.
const (
	Checks Purpose = iota // a probe of the health check, or its echo
	Load                  // a frame that is counted, and not answered
	Ping                  // a request that is answered at once
	Pong                  // its answer
)

// kindOfLoad is the kind of Load; those of Ping and Pong follow.
const kindOfLoad = 3

// background is the priority of a benchmark's load in its 802.1Q tag: switches that know priorities let all other
// traffic pass first (IEEE 802.1Q, table I-1: 1 is "background", below the 0 of "best effort").
const background = 1 << 13

// Head returns the bytes with which every probe begins.
func Head() []byte { return append(binary.BigEndian.AppendUint32(nil, magic), version) }

// Kinds returns the byte of the kind, and the values that it has in probes for the health check, or in those of
// benchmarks.
func Kinds(benchmark bool) (at int, values [][]byte) {
	if benchmark {
		return kindAt, [][]byte{{kindOfLoad}, {kindOfLoad + 1}, {kindOfLoad + 2}}
	}
	return kindAt, [][]byte{{kindProbe}, {kindProbe | hears}, {kindEcho}}
}

// Secret is a key with its number. Controllers derive the keys from the cluster's secret, a new one each day; a host
// without controllers makes one at its start.
type Secret struct {
	Number uint32
	Key    [32]byte
}

// secretTime is how long a key is the one that signs.
const secretTime = 24 * time.Hour

// Secrets returns the keys of a cluster at an instant: the one that signs first, then those of the day before and of
// the next day, which are accepted because clocks differ. A host that was taken out of the cluster knows them for at
// most two more days.
func Secrets(cluster []byte, now time.Time) []Secret {
	day := uint32(now.Unix() / int64(secretTime/time.Second))
	list := make([]Secret, 0, 3)
	for _, n := range []uint32{day, day - 1, day + 1} {
		h := hmac.New(sha256.New, cluster)
		h.Write(binary.BigEndian.AppendUint32([]byte("heddle probes between hosts "), n)) // never fails
		list = append(list, Secret{n, [32]byte(h.Sum(nil))})
	}
	return list
}

// Probe is the content of a probe or an echo.
type Probe struct {
	Echo bool
	// Hears: the sender of a probe hears the echoes.
	Hears bool
	// For says what it is for; Echo and Hears are those of Checks.
	For      Purpose
	VLAN     uint16
	Size     int // bytes of layer 3
	Number   uint64
	Sent     int64 // ns, by the sender's clock; in a benchmark its number
	From, To EndID
}

// Errors of Read.
var (
	// ErrForeign means that the frame is no probe. This is normal: beacons have the same EtherType.
	ErrForeign = errors.New("not a probe between hosts")
	// ErrForged means that a probe is signed with no key of this host's.
	ErrForged = errors.New("a probe that is signed with no key of the cluster")
)

// Frame returns the probe as a whole Ethernet frame, with an 802.1Q tag in a VLAN.
func (s *Secret) Frame(p Probe, from, to plan.MAC) []byte {
	size := min(max(p.Size, Shortest), Longest)
	f := make([]byte, 0, 18+size)
	f = append(append(f, to[:]...), from[:]...)
	if p.VLAN != 0 {
		tag := p.VLAN
		if p.For == Load {
			tag |= background
		}
		f = binary.BigEndian.AppendUint16(append(f, 0x81, 0x00), tag)
	}
	f = binary.BigEndian.AppendUint16(f, EtherType)
	return s.Append(f, p)
}

// Append appends the payload.
func (s *Secret) Append(f []byte, p Probe) []byte {
	size := min(max(p.Size, Shortest), Longest)
	start := len(f)
	kind := byte(kindProbe)
	switch {
	case p.For != Checks:
		kind = kindOfLoad + byte(p.For-Load)
	case p.Echo:
		kind = kindEcho
	case p.Hears:
		kind |= hears
	}
	f = append(binary.BigEndian.AppendUint32(f, magic), version, kind)
	f = binary.BigEndian.AppendUint16(f, p.VLAN)
	f = binary.BigEndian.AppendUint16(f, uint16(size))
	f = binary.BigEndian.AppendUint16(f, 0)
	f = binary.BigEndian.AppendUint32(f, s.Number)
	f = binary.BigEndian.AppendUint64(f, p.Number)
	f = binary.BigEndian.AppendUint64(f, uint64(p.Sent))
	f = append(append(f, p.From[:]...), p.To[:]...)
	f = append(f, s.mac(f[start:])...)
	return append(f, make([]byte, size-Shortest)...)
}

// Read decodes a payload, the bytes after the EtherType; a long probe may have lost its padding on the way here. The
// cheap checks come first, so that a flood of foreign frames costs little.
func Read(b []byte, keys []Secret) (p Probe, err error) {
	if len(b) < Shortest || binary.BigEndian.Uint32(b) != magic || b[4] != version {
		return p, ErrForeign
	}
	n := binary.BigEndian.Uint32(b[12:])
	ok := false
	for i := range keys {
		if keys[i].Number == n {
			ok = hmac.Equal(b[signed:Shortest], keys[i].mac(b[:signed]))
			break
		}
	}
	if !ok {
		return p, ErrForged
	}
	p = Probe{Echo: b[kindAt]&^hears == kindEcho, Hears: b[kindAt]&hears != 0, VLAN: binary.BigEndian.Uint16(b[6:]),
		Size: int(binary.BigEndian.Uint16(b[8:])), Number: binary.BigEndian.Uint64(b[16:]),
		Sent: int64(binary.BigEndian.Uint64(b[24:])), From: EndID(b[32:]), To: EndID(b[48:])}
	if kind := b[kindAt]; kind >= kindOfLoad && kind-kindOfLoad <= byte(Pong-Load) {
		p.For = Load + Purpose(kind-kindOfLoad)
	}
	if p.Size < Shortest || p.Size > Longest {
		return p, ErrForged
	}
	return p, nil
}

// Answer returns the echo of a probe.
func (p Probe) Answer() Probe {
	if p.For == Ping {
		p.For = Pong
		return p
	}
	p.Echo, p.Hears = true, false
	return p
}

func (s *Secret) mac(b []byte) []byte {
	h := hmac.New(sha256.New, s.Key[:])
	h.Write(b) // never fails
	return h.Sum(nil)[:macLen]
}
