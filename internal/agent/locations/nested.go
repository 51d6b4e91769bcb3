package locations

import (
	"iter"
	"maps"
	"slices"
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
	// tick is the longest that the kernel's clock stands still: a MAC may have been heard that much later than it says.
	tick = 10 * time.Millisecond
	// backEvery is the least time between two claims of a MAC that are made because the table shows that it came back.
	// If guests of two hosts use one MAC all the time, its location changes no more often than that.
	backEvery = 5 * time.Second
	// forgottenAtOnce is how many MACs are removed in one turn of the loop.
	forgottenAtOnce = 4096
)

// nested are the MACs that were learned behind ports of overlay segments: those of nested guests. The switch program
// reports each when it is learned; the table is read each second, as what has aged or moved is not reported.
type nested struct {
	macs map[overlay.Key]bool
	// whole has the same MACs without their VLANs.
	whole map[overlay.Key]bool
	// rivals are those of macs of which the controllers said that another host has them; those of whole, that one has
	// them which knows no VLANs inside a VNI.
	rivals map[overlay.Key]rival
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

// rival is another host that has a MAC which was learned here.
type rival struct {
	// said is when the controllers said so last.
	said time.Time
	// back is when this host claimed the MAC anew, as the table showed that it came back; zero for never.
	back time.Time
}

func newNested() nested {
	return nested{macs: map[overlay.Key]bool{}, whole: map[overlay.Key]bool{}, rivals: map[overlay.Key]rival{},
		reports: map[plan.PortID]int{}, rate: rate.NewLimiter(learnsPerSecond, learnsPerSecond/10)}
}

// claimed takes in that the controllers say that another host has a MAC.
func (n *nested) claimed(key overlay.Key, now time.Time) {
	if n.macs[key] || n.whole[key] {
		n.rivals[key] = rival{said: now, back: n.rivals[key].back}
	}
}

// rivalOf is the other host that has a MAC.
func (n *nested) rivalOf(key overlay.Key) (r rival, is bool) {
	r, is = n.rivals[key]
	if w, other := n.rivals[key.Whole()]; other && w.said.After(r.said) {
		r.said, is = w.said, true
	}
	return r, is
}

// has takes in that a MAC is behind a port.
func (n *nested) has(key overlay.Key) { n.macs[key], n.whole[key.Whole()] = true, true }

// learnedAt is the key of a MAC that was learned in a VLAN inside a VNI.
func learnedAt(vni uint32, vlan uint16, mac plan.MAC) overlay.Key {
	return overlay.Key{VNI: vni, Inside: overlay.In(vlan), MAC: mac}
}

// take takes in which MACs are learned behind ports of overlay segments; at is when the table was read. elsewhere: the
// controllers say that another host has a MAC. Of those, gone have been silent here for long and are to be forgotten;
// back were heard here after the controllers said so, and are to be claimed anew. The program reports a MAC only when
// it is new to the table, and not beyond the port's limit: one that comes back before this host has forgotten it, or in
// a flood of others, shows in the table alone.
func (n *nested) take(all []observe.MACEntry, at time.Time, elsewhere func(overlay.Key) bool) (
	gone []observe.MACEntry, back []overlay.Key) {
	clear(n.macs)
	clear(n.whole)
	for i := range all {
		m := &all[i]
		key := learnedAt(m.VNI, m.VLAN, m.MAC)
		r, is := n.rivalOf(key)
		is = is && elsewhere(key)
		heard := at.Add(tick - time.Duration(m.Idle*float64(time.Second)))
		switch {
		case is && heard.After(r.said) && (r.back.IsZero() || at.Sub(r.back) >= backEvery):
			n.rivals[key] = rival{said: r.said, back: at}
			back = append(back, key)
		case is && m.Idle >= silentFor && !heard.After(r.said) && len(gone) < forgottenAtOnce:
			gone = append(gone, *m)
			continue
		}
		n.has(key)
	}
	for key := range n.rivals {
		if !n.macs[key] && !n.whole[key] {
			delete(n.rivals, key)
		}
	}
	return gone, back
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

// Heard has the controllers told at once of MACs that were learned behind ports of overlay segments.
func (l *Part) Heard(list []dataplane.Told) {
	if l.keeper == nil {
		return
	}
	now, crowded := time.Now(), false
	var notes []segments.Noted
	for i := range list {
		e := &list[i]
		if e.Kind != abi.TellLearned && e.Kind != abi.TellMoved || e.VNI == 0 || e.Port.Name == spec.TunnelName ||
			!l.IsDefined(e.Port.Switch) {
			continue
		}
		crowds := l.nested.crowds(e, now)
		crowded = crowded || crowds
		if note, news := l.nested.hear(e, now, crowds, l.keeper.Elsewhere); news {
			notes = append(notes, note)
		}
	}
	if len(notes) > 0 {
		l.keeper.Note(notes)
	}
	if crowded {
		l.readSoon()
	}
}

// hear takes in a report, and makes the claim that follows from it; false where the next reading of the table shows it
// as well.
func (n *nested) hear(e *dataplane.Told, now time.Time, crowded bool, elsewhere func(overlay.Key) bool) (
	note segments.Noted, news bool) {
	key := learnedAt(e.VNI, e.VLAN, e.MAC)
	// It was forgotten because it was heard from elsewhere, of which the controllers have not told this host yet.
	anew := e.Kind == abi.TellLearned && n.macs[key]
	if crowded && !anew && !elsewhere(key) {
		return note, false
	}
	n.has(key)
	note = claimOf(key, now)
	note.Anew = anew
	return note, true
}

// readSoon has the table read a moment later.
func (l *Part) readSoon() {
	if wait, wanted := l.nested.plan(time.Now()); wanted {
		time.AfterFunc(wait, func() { l.host.Loop.Post(l.readNow) })
	}
}

func (l *Part) readNow() {
	begun := time.Now()
	if all, at, ok := l.learned(); ok {
		l.listen(all, at)
	}
	l.say()
	if l.nested.ends(begun) {
		l.readSoon()
	}
}

// plan plans the next reading, and returns after what time it is; false where one is planned already.
func (n *nested) plan(now time.Time) (wait time.Duration, wanted bool) {
	if n.due {
		return 0, false
	}
	n.due = true
	return max(0, max(readEvery, readShare*n.took)-now.Sub(n.read)), true
}

// ends ends a reading that began then. It reports whether another one is needed, since reports may be left out.
func (n *nested) ends(begun time.Time) (again bool) {
	n.due, n.read = false, time.Now()
	n.took = n.read.Sub(begun)
	return n.read.Before(n.crowded)
}

// any reports whether something was learned.
func (n *nested) any() bool { return len(n.macs) > 0 }

// all are the MACs that were learned.
func (n *nested) all() iter.Seq[overlay.Key] { return maps.Keys(n.macs) }

// learned reads which MACs are learned behind ports of overlay segments; at is when that was so.
func (l *Part) learned() (all []observe.MACEntry, at time.Time, ok bool) {
	all, at, err := l.host.Kernel().MACsAt()
	if err != nil {
		l.host.Complain("read the MACs that were learned in overlay segments", err)
		return nil, at, false
	}
	return slices.DeleteFunc(all, func(m observe.MACEntry) bool {
		return m.VNI == 0 || m.Port.Name == spec.TunnelName
	}), at, true
}

// listen takes in which MACs are learned, and has those forgotten that have moved to other hosts. It returns the
// others.
func (l *Part) listen(learned []observe.MACEntry, at time.Time) []observe.MACEntry {
	all := slices.DeleteFunc(slices.Clone(learned), func(m observe.MACEntry) bool { return !l.IsDefined(m.Switch) })
	gone, back := l.nested.take(all, at, l.keeper.Elsewhere)
	if len(gone) > 0 {
		if _, err := l.host.Kernel().ForgetMACs(gone); err != nil {
			l.host.Complain("forget MACs that have moved to other hosts", err)
		}
	}
	var notes []segments.Noted
	for _, key := range back {
		notes = append(notes, claimOf(key, at))
	}
	if len(notes) > 0 {
		l.keeper.Note(notes)
	}
	if len(gone) == 0 {
		return learned
	}
	left := map[observe.MACEntry]bool{}
	for _, m := range gone {
		left[m] = true
	}
	return slices.DeleteFunc(learned, func(m observe.MACEntry) bool { return left[m] })
}

// claimOf is the claim of a MAC that was learned behind a port.
func claimOf(key overlay.Key, at time.Time) segments.Noted {
	return segments.Noted{VNI: span.VNI(key.VNI), Key: segments.KeyOf(key),
		Claim: span.Claim{Source: span.Learned, Since: at.UnixMilli(), Untagged: key.Inside == overlay.In(0)}}
}
