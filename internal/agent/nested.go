package agent

import (
	"time"

	"golang.org/x/time/rate"

	"heddle/internal/abi"
	"heddle/internal/agent/segments"
	"heddle/internal/dataplane"
	"heddle/internal/observe"
	"heddle/internal/overlay"
	"heddle/internal/overlay/span"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// Limits of what is said of learned MACs one by one. Beyond them the table of MACs is read, and what is new in it goes
// to the controllers together.
const (
	// learnsPerSecond is how many of the host's learned MACs are said at once, in a second.
	learnsPerSecond = 1000
	// readEvery is the least time between two readings of the table, and readShare how much longer than a reading the
	// time until the next one is: a flood of sources takes no more of the loop than that.
	readEvery = 40 * time.Millisecond
	readShare = 10
	// silentFor is how long a MAC that another host claims must have been silent here before it is forgotten (S92).
	silentFor = 1.0
)

// nested are the MACs that were learned behind ports of overlay segments: those of nested guests. The switch program
// reports each when it is learned; the table is read each second, as what has aged or moved is not reported.
type nested struct {
	macs map[overlay.Key]bool
	// rivals are those of macs of which the controllers say that another host has them.
	rivals map[overlay.Key]bool
	rate   *rate.Limiter
	// reports counts those of each port in the second that began then: the program leaves out what is beyond
	// abi.TellsPerSecond.
	reports map[plan.PortID]int
	second  time.Time
	// crowded is until when reports may be left out, so that the table is read again and again.
	crowded time.Time
	due     bool // a reading is
	// read is when the last reading ended, and took how long it and what follows took.
	read time.Time
	took time.Duration
}

func newNested() nested {
	return nested{macs: map[overlay.Key]bool{}, rivals: map[overlay.Key]bool{}, reports: map[plan.PortID]int{},
		rate: rate.NewLimiter(learnsPerSecond, learnsPerSecond/10)}
}

// claimed takes in that the controllers say that another host has a MAC.
func (n *nested) claimed(key overlay.Key) {
	if n.macs[key] {
		n.rivals[key] = true
	}
}

// crowds counts a report of a port, and says whether others may have been left out.
func (n *nested) crowds(e *dataplane.Told, now time.Time) bool {
	if now.Sub(n.second) >= time.Second {
		n.second = now
		clear(n.reports)
	}
	n.reports[e.Port]++
	if e.Untold == 0 && n.reports[e.Port] < abi.TellsPerSecond && n.rate.AllowN(now, 1) {
		return false
	}
	n.crowded = now.Add(1100 * time.Millisecond) // the program counts anew after a second
	return true
}

// heard has the controllers told at once of MACs that were learned behind ports of overlay segments.
func (l *locating) heard(list []dataplane.Told) {
	if l.keeper == nil {
		return
	}
	now, crowded := time.Now(), false
	var notes []segments.Noted
	for i := range list {
		e := &list[i]
		if e.Kind != abi.TellLearned && e.Kind != abi.TellMoved || e.VNI == 0 || e.Port.Name == spec.TunnelName ||
			!l.isDefined(e.Port.Switch) {
			continue
		}
		key := overlay.Key{VNI: e.VNI, MAC: e.MAC}
		if l.nested.crowds(e, now) {
			crowded = true
			if !l.keeper.Elsewhere(key) { // else it came back, which the table does not show
				continue
			}
		}
		l.nested.macs[key] = true
		notes = append(notes, segments.Noted{VNI: span.VNI(e.VNI), Key: span.MACKey(e.MAC),
			Claim: span.Claim{Source: span.Learned, Since: now.UnixMilli()}})
	}
	if len(notes) > 0 {
		l.keeper.Note(notes)
	}
	if crowded {
		l.readSoon()
	}
}

// readSoon has the table read a moment later.
func (l *locating) readSoon() {
	n := &l.nested
	if n.due {
		return
	}
	n.due = true
	wait := max(readEvery, readShare*n.took) - time.Since(n.read)
	time.AfterFunc(max(wait, 0), func() { l.post(l.readNow) })
}

func (l *locating) readNow() {
	l.nested.due = false
	l.listen()
	l.say()
	l.nested.took = time.Since(l.nested.read)
	l.nested.read = time.Now()
	if l.nested.read.Before(l.nested.crowded) {
		l.readSoon()
	}
}

// listen reads which MACs are learned behind ports of overlay segments.
func (l *locating) listen() {
	l.nested.read = time.Now()
	all, err := l.kernel.MACs()
	if err != nil {
		l.complain("read the MACs that were learned in overlay segments", err)
		return
	}
	n := &l.nested
	clear(n.macs)
	var moved []observe.MACEntry
	for i := range all {
		m := &all[i]
		if m.VNI == 0 || m.Port.Name == spec.TunnelName || !l.isDefined(m.Switch) {
			continue
		}
		key := overlay.Key{VNI: m.VNI, MAC: m.MAC}
		if n.rivals[key] && m.Idle >= silentFor && len(moved) < forgottenAtOnce && l.keeper.Elsewhere(key) {
			moved = append(moved, *m)
			continue
		}
		n.macs[key] = true
	}
	l.forgetMoved(moved)
}

// forgetMoved forgets MACs that were learned here and are behind another host now.
func (l *locating) forgetMoved(list []observe.MACEntry) {
	if len(list) > 0 {
		if _, err := l.kernel.ForgetMACs(list); err != nil {
			l.complain("forget MACs that have moved to other hosts", err)
		}
	}
	for key := range l.nested.rivals {
		if !l.nested.macs[key] {
			delete(l.nested.rivals, key)
		}
	}
}
