package meter

import (
	"sync/atomic"
	"time"
	"unsafe"

	"heddle/internal/flow"
)

// tick is a time by a clock that counts from the host's start, also while it sleeps, in units of 100 ms. It never goes
// back or jumps, and is the same for an agent and its successor.
type tick uint32

const tickLength = 100 * time.Millisecond

// never is later than any time: a tick of 100 ms lasts 13 years.
const never = ^tick(0)

func floorTick(up time.Duration) tick { return tick(up / tickLength) }
func ceilTick(up time.Duration) tick  { return tick((up + tickLength - 1) / tickLength) }

// entry is one flow in the file: four lines of a processor's cache. It is free while its head is 0.
//
// A change is written to the slot that is not current, and one store of the head makes that slot current. So a kill
// between two instructions leaves either the old content or the new one.
type entry struct {
	// head is when the flow began, in ms since 1970, << 2 | inUse | the current slot. The start identifies the flow
	// and never changes.
	head  atomic.Uint64
	key   flow.Key
	slots [2]slot
}

const inUse = 2

// slot is the state of a flow after some batch.
type slot struct {
	packets, bytes, frameBytes             uint64 // since the start
	sentPackets, sentBytes, sentFrameBytes uint64 // of these, what earlier records reported
	last                                   int64  // ms since 1970: the last packet
	deltaFirst                             int64  // ms since 1970: the first packet that no record has reported
	batch                                  uint64 // number of the batch that was added last
	seen                                   tick   // the last packet, rounded up
	reported                               tick   // the previous record, or the start
	in, out                                uint16
	flags, deltaFlags                      uint16
	tos, deltaTOS                          uint8
	minTTL, maxTTL                         uint8
	deltaMinTTL, deltaMaxTTL               uint8
	ended                                  bool // the flow's last record was made: the entry is about to be freed
	_                                      uint8
}

const entrySize = 256

// This is the layout of the file: a change of it needs a new layoutVersion.
var (
	_ [entrySize]byte = [unsafe.Sizeof(entry{})]byte{}
	_ [56]byte        = [unsafe.Sizeof(flow.Key{})]byte{}
)

// current is the slot that is valid; the entry must be in use.
func (e *entry) current() *slot { return &e.slots[e.head.Load()&1] }

// start is when the flow began, in ms since 1970.
func (e *entry) start() int64 { return int64(e.head.Load() >> 2) }

// change lets f write the entry's next content, which begins as a copy of the present one.
func (e *entry) change(f func(*slot)) {
	head := e.head.Load()
	next := &e.slots[head&1^1]
	*next = e.slots[head&1]
	f(next)
	e.head.Store(head ^ 1)
}

// fold adds counts from a batch, unless the entry has them already.
func (e *entry) fold(c *flow.Counts, batch uint64, seen tick) (added bool) {
	head := e.head.Load()
	old := &e.slots[head&1]
	if old.batch >= batch {
		return false
	}
	next := &e.slots[head&1^1]
	*next = *old
	next.add(c, batch, seen)
	e.head.Store(head ^ 1)
	return true
}

// begin makes a free entry the entry of a flow.
func (e *entry) begin(k *flow.Key, c *flow.Counts, batch uint64, seen tick) {
	e.key = *k
	e.slots[0] = slot{reported: seen}
	e.slots[0].add(c, batch, seen)
	e.head.Store(uint64(max(c.First, 0))<<2 | inUse)
}

func (e *entry) free() { e.head.Store(0) }

// over notes that the flow's last record was made. It writes a single byte: a kill at this point leaves the entry
// either as it was, or as one that the successor frees.
func (e *entry) over() { e.current().ended = true }

// sane reports whether this package can have written the entry.
func (e *entry) sane() bool {
	s := e.current()
	return s.packets > 0 && s.packets >= s.sentPackets && s.bytes >= s.sentBytes && s.frameBytes >= s.sentFrameBytes &&
		e.key.Direction <= flow.Egress && s.batch > 0
}

func (s *slot) add(c *flow.Counts, batch uint64, seen tick) {
	if s.packets == s.sentPackets {
		s.deltaFirst, s.deltaTOS, s.deltaFlags, s.deltaMinTTL, s.deltaMaxTTL =
			c.First, c.TOS, c.TCPFlags, c.MinTTL, c.MaxTTL
	} else {
		if c.First < s.deltaFirst {
			s.deltaFirst, s.deltaTOS = c.First, c.TOS
		}
		s.deltaFlags |= c.TCPFlags
		s.deltaMinTTL, s.deltaMaxTTL = min(s.deltaMinTTL, c.MinTTL), max(s.deltaMaxTTL, c.MaxTTL)
	}
	if s.packets == 0 {
		s.tos, s.minTTL, s.maxTTL = c.TOS, c.MinTTL, c.MaxTTL
	}
	s.minTTL, s.maxTTL = min(s.minTTL, c.MinTTL), max(s.maxTTL, c.MaxTTL)
	s.flags |= c.TCPFlags
	s.packets, s.bytes, s.frameBytes = s.packets+c.Packets, s.bytes+c.Bytes, s.frameBytes+c.FrameBytes
	if c.Last >= s.last {
		s.last, s.in, s.out = c.Last, c.In, c.Out
	}
	s.batch, s.seen = batch, max(s.seen, seen)
}

// sent notes that everything so far has been reported.
func (s *slot) sent(now tick) {
	s.sentPackets, s.sentBytes, s.sentFrameBytes = s.packets, s.bytes, s.frameBytes
	s.reported = now
}

// unsent reports whether there is something that no record has reported.
func (s *slot) unsent() bool { return s.packets > s.sentPackets }

func (s *slot) total(start int64) flow.Counts {
	return flow.Counts{Packets: s.packets, Bytes: s.bytes, FrameBytes: s.frameBytes, First: start,
		Last: max(s.last, start),
		In:   s.in, Out: s.out, TCPFlags: s.flags, TOS: s.tos, MinTTL: s.minTTL, MaxTTL: s.maxTTL}
}

// delta is what no record has reported yet. Without packets it is empty, with the time of the last one.
func (s *slot) delta(start int64) flow.Counts {
	last := max(s.last, start)
	if !s.unsent() {
		return flow.Counts{First: last, Last: last, In: s.in, Out: s.out, TOS: s.tos, MinTTL: s.minTTL,
			MaxTTL: s.maxTTL}
	}
	return flow.Counts{Packets: s.packets - s.sentPackets, Bytes: s.bytes - s.sentBytes,
		FrameBytes: s.frameBytes - s.sentFrameBytes,
		First:      min(max(s.deltaFirst, start), last), Last: last, In: s.in, Out: s.out,
		TCPFlags: s.deltaFlags, TOS: s.deltaTOS, MinTTL: s.deltaMinTTL, MaxTTL: s.deltaMaxTTL}
}
