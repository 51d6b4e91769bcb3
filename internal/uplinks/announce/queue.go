package announce

import (
	"bytes"
	"time"

	"heddle/internal/plan"
)

// Kind is the kind of an announcement. It determines how often and when it is sent.
type Kind uint8

// The kinds of announcement.
const (
	OwnMAC     Kind = iota // a port's effective MAC, 5 times within a second
	LearnedMAC             // a MAC learned behind a port, twice
	Query                  // towards a port, twice
	kinds
)

// schedule is when the repeats of an announcement are sent, counted from the change. The five of a port's own MAC have
// the intervals that a virtual machine monitor uses after a migration.
var schedule = [kinds][]time.Duration{
	OwnMAC:     {0, 50 * time.Millisecond, 200 * time.Millisecond, 450 * time.Millisecond, time.Second},
	LearnedMAC: {0, 450 * time.Millisecond},
	Query:      {0, time.Second},
}

// The most frames that the whole host sends per tick, and the most that are queued.
const (
	Tick    = 100 * time.Millisecond
	PerTick = 128
	most    = 32768 // capacity, in frames
)

// Announcement is a frame to send on a device.
type Announcement struct {
	Kind   Kind
	Device uint32 // ifindex
	Tunnel bool   // the device is a tunnel's, and the frame has the number of its segment as its tag
	Frame  []byte
}

// Equal reports whether two announcements are the same frame on the same device, with the same schedule.
func (a Announcement) Equal(b Announcement) bool {
	return a.Kind == b.Kind && a.Device == b.Device && bytes.Equal(a.Frame, b.Frame)
}

// Queue holds what is still to be announced. The first frames for ports' own MACs are sent before all repeats, repeats
// before learned MACs, and those before queries. The zero value is ready for use; it is for one goroutine.
type Queue struct {
	lines   [kinds][]line // one for each repeat, sorted by the due time
	version map[plan.PortID]uint64
	last    uint64
	tick    time.Time // when the current tick began
	sent    int       // frames sent in that tick
	waiting int
	dropped uint64
}

type line struct{ entries []entry }

type entry struct {
	port    plan.PortID
	version uint64
	due     time.Time
	a       Announcement
}

// Replace drops what is still queued for the port and queues these announcements instead: the newest location wins.
// Announcements beyond the capacity are counted as dropped.
func (q *Queue) Replace(port plan.PortID, now time.Time, list ...Announcement) {
	q.last++
	if q.version == nil {
		q.version = map[plan.PortID]uint64{}
	}
	q.version[port] = q.last
	q.add(port, now, list)
}

// Add queues these announcements in addition.
func (q *Queue) Add(port plan.PortID, now time.Time, list ...Announcement) {
	if q.version[port] == 0 {
		q.Replace(port, now, list...)
		return
	}
	q.add(port, now, list)
}

func (q *Queue) add(port plan.PortID, now time.Time, list []Announcement) {
	for _, a := range list {
		if q.lines[a.Kind] == nil {
			q.lines[a.Kind] = make([]line, len(schedule[a.Kind]))
		}
		for i, after := range schedule[a.Kind] {
			if q.waiting >= most {
				q.dropped++
				continue
			}
			l := &q.lines[a.Kind][i]
			l.entries = append(l.entries, entry{port, q.version[port], now.Add(after), a})
			q.waiting++
		}
	}
}

// Due removes and returns the announcements that are due.
func (q *Queue) Due(now time.Time) []Announcement {
	if now.Sub(q.tick) >= Tick {
		q.tick, q.sent = now, 0
	}
	var out []Announcement
	for k := range q.lines {
		for i := range q.lines[k] {
			l := &q.lines[k][i]
			for q.settle(l) && !l.entries[0].due.After(now) && q.sent < PerTick {
				out = append(out, l.entries[0].a)
				q.take(l)
				q.sent++
			}
		}
	}
	if q.waiting == 0 {
		q.version = nil
	}
	return out
}

// settle drops replaced announcements from the front of a line; false when the line is empty.
func (q *Queue) settle(l *line) bool {
	for len(l.entries) > 0 && l.entries[0].version != q.version[l.entries[0].port] {
		q.take(l)
	}
	return len(l.entries) > 0
}

func (q *Queue) take(l *line) {
	l.entries[0] = entry{}
	l.entries = l.entries[1:]
	q.waiting--
}

// Next returns when Due has something again; false when the queue is empty.
func (q *Queue) Next() (at time.Time, ok bool) {
	for k := range q.lines {
		for i := range q.lines[k] {
			l := &q.lines[k][i]
			if q.settle(l) && (!ok || l.entries[0].due.Before(at)) {
				at, ok = l.entries[0].due, true
			}
		}
	}
	if full := q.tick.Add(Tick); ok && q.sent >= PerTick && at.Before(full) {
		at = full
	}
	return at, ok
}

// Waiting returns how many frames are queued; replaced frames count until their time.
func (q *Queue) Waiting() int { return q.waiting }

// Dropped returns how many frames exceeded the capacity.
func (q *Queue) Dropped() uint64 { return q.dropped }
