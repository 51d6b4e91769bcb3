package dataplane

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/dataplane/compile"
	"heddle/internal/dataplane/entries"
	"heddle/internal/dataplane/idle"
	"heddle/internal/dataplane/outside"
	"heddle/internal/observe"
	"heddle/internal/plan"
)

// Snapshot is a copy of everything that the switch program reads when it decides about a frame, taken from the live
// tables. Its times are durations on the kernel's clock of ticks.
type Snapshot struct {
	// Now is when the copy was taken.
	Now time.Duration
	// Learned are the learned MACs. Sent says when each source last sent from this host, if within the last second
	// (S91).
	Learned []LearnedAt
	Sent    []SentAt
	// Spent is how much of their storm control's allowance ports have used up, if any.
	Spent []SpentAt
	// Awake are the ports whose wait for their guest has ended, with the number of the last such wait (S99).
	Awake map[plan.PortID]uint32
	// Speakers are the ports that sent last with a MAC that another port owns (S111).
	Speakers []observe.Speaker

	loaded    *idle.Place[*Recorder] // of dry runs
	hz, ticks uint64
	room      uint32 // for learned MACs
	slots     map[plan.PortID]uint32
	overlays  map[compile.OverlaySegment]uint16
	trunks    map[plan.PortID]compile.Trunk // inside VNIs
	tunnels   tunnelMaps                    // the live tables; none on a host without overlay segments
	control   abi.Control
	plan      [][]byte // the active half of each plan table, in the order of halves
	macs      entries.Of[abi.MACKey, abi.Learned]
	marks     entries.Of[abi.MACKey, uint64]
	held      entries.Of[uint32, uint64]
	ownMarks  entries.Of[uint32, abi.OwnMark]
	buckets   entries.Of[uint32, abi.StormBucket]
	awake     entries.Of[uint32, uint64]
	speakers  entries.Of[uint32, abi.Speaker]
	outside   outside.Copy
}

// LearnedAt is a learned MAC and when it was last heard.
type LearnedAt struct {
	Port plan.PortID
	VNI  uint32 // of an overlay segment, 0 = none
	VLAN uint16 // 0 = untagged segment
	AD   bool   // 802.1ad
	MAC  plan.MAC
	Seen time.Duration
}

// SentAt says when a port of the switch last sent from a source.
type SentAt struct {
	Switch string
	VNI    uint32
	VLAN   uint16
	AD     bool
	MAC    plan.MAC
	At     time.Duration
}

// SpentAt is how much of its storm control's allowance a port had used up when the last frame passed, for one class of
// frames (abi.ClassUnicast: unknown destinations).
type SpentAt struct {
	Port  plan.PortID
	Class int
	// Billionths is the used-up allowance in billionths of a frame.
	Billionths int64
	At         time.Duration
}

// halfBytes returns the size of one half of a table with two halves, in bytes.
func halfBytes(table *ebpf.Map) int64 {
	return int64(table.MaxEntries()) / 2 * int64(table.ValueSize())
}

// planMaps returns the plan tables, in a fixed order.
func planMaps(m *vswitchMaps) []*ebpf.Map {
	return []*ebpf.Map{m.Ports, m.VlanSets, m.Teams, m.Segments, m.Groups, m.Members, m.Owners, m.GuardAddresses}
}

// Snapshot copies the live tables; it changes nothing and takes milliseconds. Entries that change meanwhile are copied
// in their old or new state.
func (k *Kernel) Snapshot() (*Snapshot, error) {
	s := &Snapshot{loaded: k.loaded, hz: k.hz, room: k.objects.Macs.MaxEntries(), slots: maps.Clone(k.slots.Ports)}
	var err error
	if s.control, err = k.tables.inForce(); err != nil {
		return nil, err
	}
	m := &k.objects.vswitchMaps
	for _, table := range planMaps(m) {
		b := make([]byte, halfBytes(table))
		if err := readAt(table, b, int64(s.control.Generation&1)*halfBytes(table)); err != nil {
			return nil, fmt.Errorf("copy the active plan: %w", err)
		}
		s.plan = append(s.plan, b)
	}
	err = errors.Join(s.macs.Read(m.Macs), s.held.Read(m.Held), s.ownMarks.Read(m.OwnMarks), s.marks.Read(m.Marks),
		s.buckets.Read(m.StormBuckets), s.awake.Read(m.Awake), s.speakers.Read(m.Speakers))
	if err != nil {
		return nil, fmt.Errorf("copy what was learned: %w", err)
	}
	if s.ticks, err = k.ticks(); err != nil {
		return nil, err
	}
	s.Now = s.at(s.ticks)
	s.overlays = maps.Clone(k.slots.Segments)
	if k.overlays != nil && k.overlays.loaded {
		s.tunnels, s.trunks = k.overlays.maps, map[plan.PortID]compile.Trunk{}
		for id, slot := range s.slots {
			if t, is := k.overlays.trunks.written[slot]; is {
				s.trunks[id] = compile.Trunk{Switch: id.Switch, VNI: t.Vni, Untagged: t.Flags&abi.TrunkUntagged != 0}
			}
		}
	}
	s.name(k.slots)
	return s, s.outside.Read(s.tunnels.outside())
}

// at converts a number of ticks to a duration.
func (s *Snapshot) at(ticks uint64) time.Duration {
	return time.Duration(ticks/s.hz)*time.Second + time.Duration(ticks%s.hz)*time.Second/time.Duration(s.hz)
}

// name adds the names of ports and switches to the records of senders.
func (s *Snapshot) name(places *compile.Slots) {
	decode := places.Decode()
	ports, switches := make(map[uint32]plan.PortID, len(s.slots)), map[uint32]string{}
	for id, slot := range s.slots {
		ports[slot] = id
	}
	for name, id := range places.Switches {
		switches[uint32(id)], _ = compile.SpaceOf(name)
	}
	sent := func(k abi.MACKey, at uint64) {
		if k.Segment != 0 && at+s.hz > s.ticks {
			one := SentAt{Switch: switches[k.Segment>>abi.SegmentSwitchShift-1], MAC: k.MAC, At: s.at(at)}
			one.VNI, one.VLAN, one.AD = decode(k.Segment)
			s.Sent = append(s.Sent, one)
		}
	}
	for i, k := range s.macs.Keys {
		e := s.macs.Values[i]
		if port, ok := ports[e.Slot]; ok {
			one := LearnedAt{Port: port, MAC: k.MAC, Seen: s.at(e.Seen)}
			one.VNI, one.VLAN, one.AD = decode(k.Segment)
			s.Learned = append(s.Learned, one)
		}
		if e.Sent != 0 {
			sent(k, e.Sent-1)
		}
	}
	for i, k := range s.marks.Keys {
		sent(k, s.marks.Values[i])
	}
	for _, m := range s.ownMarks.Values {
		sent(m.Key, m.At)
	}
	s.Awake = map[plan.PortID]uint32{}
	for i, slot := range s.awake.Keys {
		if port, ok := ports[slot]; ok && s.awake.Values[i] != 0 {
			s.Awake[port] = uint32(s.awake.Values[i])
		}
	}
	s.Speakers = speakersOf(&s.speakers, ports)
	for i, slot := range s.buckets.Keys {
		for class, word := range s.buckets.Values[i].Word {
			if port, ok := ports[slot]; ok && word != 0 {
				s.Spent = append(s.Spent, s.spent(port, class, word))
			}
		}
	}
}

// spent decodes a bucket of storm control. Its clock has 32 bits.
func (s *Snapshot) spent(port plan.PortID, class int, word uint64) SpentAt {
	ago := int32(uint32(s.ticks) - uint32(word>>32))
	return SpentAt{Port: port, Class: class, Billionths: int64(uint32(word)) * int64(time.Second) / int64(s.hz),
		At: s.at(s.ticks - uint64(int64(ago)))}
}
