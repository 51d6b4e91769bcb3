package fabric

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
	"time"
)

// Times of probes.
const (
	// Round is how often a path is probed that passes.
	Round = 20 * time.Second
	// FullEvery is in how many rounds there is one probe of the switch's MTU.
	FullEvery = 2
	// Wait is how long an echo may take.
	Wait = time.Second
	// Retry is after what time a path is probed again whose probe was lost, Failed how often one that does not pass.
	Retry  = 1500 * time.Millisecond
	Failed = 5 * time.Second
	// Misses is how many probes in a row have to be lost, as their sender says in the next ones, until the receiver
	// knows that its echoes do not arrive. Hits is how many echoes in a row have to come until the path passes again.
	Misses = 3
	Hits   = 2
	// Begin is within what time new paths are probed first.
	Begin = 2 * time.Second
)

// MostAtOnce bounds the probes that Due returns at a time, and MostTasks the paths that a host probes.
const (
	MostAtOnce = 64
	MostTasks  = 4096
)

// leastProbes is how many probes it takes to tell how many get lost, and leastLost how many have to be lost.
const (
	leastProbes = 10
	leastLost   = 3
)

// Send is a probe to send.
type Send struct {
	Task
	Probe
}

// Machine probes the paths of one host. It is for one goroutine.
type Machine struct {
	tracks  map[Path]*track
	numbers map[uint64]*track // by the number of a probe that is on its way
	number  uint64
	next    time.Time
	changed bool
	deaf    map[deafKey]*deaf
}

// track is one path.
type track struct {
	Task
	from, to EndID
	due      time.Time
	echoed   time.Time // the last echo of a short probe
	flight   []flight
	hits     int
	misses   int
	history  uint64 // the last probes, 1 = lost
	probes   int
	rounds   int
	full     search
	Result
}

// flight is a probe on its way.
type flight struct {
	number uint64
	size   int
	at     time.Time
}

// search finds the longest packet that passes.
type search struct {
	misses, hits int
	low, high    int // low passes, high does not; high 0: no search
	repair       time.Time
}

// NewMachine returns one without paths.
func NewMachine() *Machine {
	return &Machine{tracks: map[Path]*track{}, numbers: map[uint64]*track{}, deaf: map[deafKey]*deaf{}}
}

// Set changes which paths are probed; those that stay keep their results.
func (m *Machine) Set(tasks []Task, now time.Time) {
	keep := map[Path]bool{}
	for _, t := range tasks[:min(len(tasks), MostTasks)] {
		keep[t.Path] = true
		k := m.tracks[t.Path]
		if k != nil && k.Task == t {
			continue
		}
		m.drop(k)
		k = &track{Task: t, from: t.From.ID(), to: t.To.ID(), Result: Result{Path: t.Path}}
		k.due = now.Add(k.spread(Begin))
		m.tracks[t.Path], m.changed = k, true
	}
	for p, k := range m.tracks {
		if !keep[p] {
			m.drop(k)
			delete(m.tracks, p)
			m.changed = true
		}
	}
	m.plan()
}

func (m *Machine) drop(k *track) {
	if k == nil {
		return
	}
	for _, f := range k.flight {
		delete(m.numbers, f.number)
	}
}

// spread returns a part of a period, always the same for a path, so that paths are not probed at once.
func (k *track) spread(period time.Duration) time.Duration {
	n := binary.BigEndian.Uint32(k.from[:]) ^ binary.BigEndian.Uint32(k.to[:]) ^ uint32(k.VLAN())*2654435761
	return time.Duration(uint64(period) * uint64(n) >> 32)
}

// VLAN returns the path's VLAN.
func (k *track) VLAN() uint16 { return k.Task.VLAN }

// plan finds out when something is due next.
func (m *Machine) plan() {
	m.next = time.Time{}
	for _, k := range m.tracks {
		if at := k.wakes(); m.next.IsZero() || at.Before(m.next) {
			m.next = at
		}
	}
}

// wakes returns when something is due: a probe, or the end of the time for an echo.
func (k *track) wakes() time.Time {
	at := k.due
	for _, f := range k.flight {
		if end := f.at.Add(Wait); end.Before(at) {
			at = end
		}
	}
	return at
}

// Next returns when Due is to be called again; zero without paths.
func (m *Machine) Next() time.Time { return m.next }

// Due gives up probes whose echoes have not come in time, and returns the probes to send now.
func (m *Machine) Due(now time.Time) (list []Send) {
	if m.next.IsZero() || now.Before(m.next) {
		return nil
	}
	for _, k := range m.tracks {
		m.expire(k, now)
		if !k.due.After(now) && len(list) < MostAtOnce {
			list = append(list, m.probe(k, now)...)
		}
	}
	slices.SortFunc(list, func(a, b Send) int { return a.Path.Compare(b.Path) })
	for key, d := range m.deaf {
		if now.Sub(d.at) > 3*Round {
			m.changed = m.changed || d.n >= Misses
			delete(m.deaf, key)
		}
	}
	m.plan()
	return list
}

// probe returns the path's next probes: a short one, and where it is due a long one.
func (m *Machine) probe(k *track, now time.Time) []Send {
	sizes := []int{Shortest}
	if size := k.long(now); size > 0 {
		sizes = append(sizes, size)
	}
	k.rounds++
	k.due = now.Add(k.pause())
	var list []Send
	for _, size := range sizes {
		m.number++
		k.flight = append(k.flight, flight{m.number, size, now})
		m.numbers[m.number] = k
		list = append(list, Send{k.Task, Probe{Hears: k.hears(), VLAN: k.VLAN(), Size: size, Number: m.number,
			Sent: now.UnixNano(), From: k.from, To: k.to}})
	}
	return list
}

// pause returns the time until the next probe, if this one passes.
func (k *track) pause() time.Duration {
	switch {
	case k.State == Lost && k.misses > 0:
		return Failed
	case k.full.searches():
		return Wait
	case k.State != Passes || k.misses > 0 || k.full.misses > 0:
		return k.retry()
	case k.Full == Lost:
		return min(repairEvery, k.every())
	}
	return k.every()
}

// every returns how often the path is probed while it passes.
func (k *track) every() time.Duration { return cmp.Or(k.Every, Round) }

// retry returns after what time it is probed again whose probe was lost.
func (k *track) retry() time.Duration { return min(Retry, k.every()/2) }

// expire counts probes as lost.
func (m *Machine) expire(k *track, now time.Time) {
	k.flight = slices.DeleteFunc(k.flight, func(f flight) bool {
		if now.Sub(f.at) < Wait {
			return false
		}
		delete(m.numbers, f.number)
		if f.size > Shortest {
			k.longLost(f.size)
		} else if k.lost(); k.misses == 1 && k.State == Passes {
			m.hurry(k, now)
		}
		if !k.due.IsZero() && k.due.Sub(f.at) > k.retry() && k.State != Lost {
			k.due = f.at.Add(k.retry())
		}
		m.changed = true
		return true
	})
}

// hurry has the other paths of an uplink in a VLAN probed soon, as something may have changed there.
func (m *Machine) hurry(k *track, now time.Time) {
	for _, o := range m.tracks {
		if o.Task.From == k.Task.From && o.VLAN() == k.VLAN() && o.due.After(now.Add(Retry)) {
			o.due = now.Add(o.spread(Retry))
		}
	}
}

// hears reports whether the last probe was echoed.
func (k *track) hears() bool { return k.State == Passes && k.misses == 0 }

// mostMisses returns how many probes in a row have to be lost until the path counts as lost: the receiver knows by then
// whether they arrive, so that what passes one way is not first taken for what does not pass at all.
func (k *track) mostMisses() int {
	if k.State == Passes && k.retry() > Wait {
		return Misses + 1
	}
	return Misses // of a new path the first probe says that no echo was heard, and a fast one says it with the next
}

func (k *track) lost() {
	k.hits, k.misses = 0, k.misses+1
	k.count(1)
	if k.misses >= k.mostMisses() && k.State != Lost {
		k.State, k.Full, k.Fits, k.Astray, k.full = Lost, Unknown, 0, "", search{}
	}
}

func (k *track) count(lost uint64) {
	k.history = k.history<<1 | lost
	k.probes = min(k.probes+1, 64)
	k.Loss = 0
	if n := bits.OnesCount64(k.history & (1<<k.probes - 1)); n >= leastLost && k.probes >= leastProbes {
		k.Loss = n * 100 / k.probes
	}
}

// Echo takes in an echo, which arrived on an uplink of the host's. One that was not asked for, or comes twice, is left
// out.
func (m *Machine) Echo(p Probe, arrived string, now time.Time) {
	k := m.numbers[p.Number]
	if k == nil || k.from != p.From || k.to != p.To || k.VLAN() != p.VLAN {
		return
	}
	delete(m.numbers, p.Number)
	i := slices.IndexFunc(k.flight, func(f flight) bool { return f.number == p.Number })
	f := k.flight[i]
	k.flight = slices.Delete(k.flight, i, i+1)
	was := k.Result
	if f.size > Shortest {
		k.longPassed(f.size)
	} else {
		k.passed(now.Sub(f.at), arrived)
		k.settle(now)
	}
	if was.State != k.State || was.Full != k.Full || was.Fits != k.Fits || was.Astray != k.Astray {
		m.changed = true
	}
	if at := now.Add(k.pause()); k.due.After(at) {
		k.due = at
		m.plan()
	}
}

func (k *track) passed(took time.Duration, arrived string) {
	k.count(0)
	k.misses, k.hits = 0, k.hits+1
	switch {
	case k.State == Unknown:
		k.State = Passes
	case k.State == Lost && k.hits >= Hits:
		k.State, k.history, k.probes, k.Loss = Passes, 0, 0, 0
	}
	if k.Astray = ""; arrived != k.Task.From.Uplink {
		k.Astray = arrived
	}
	if k.Delay == 0 {
		k.Delay = took
	}
	k.Delay += (took - k.Delay) / 8
}

// usualTime is over what time the usual delay of a path is a mean. Of the first usualAfter probes it is the shortest.
const (
	usualTime  = 2 * time.Hour
	usualAfter = 8
)

// settle has the usual delay follow the present one, slowly.
func (k *track) settle(now time.Time) {
	share := float64(now.Sub(k.echoed)) / float64(usualTime)
	switch {
	case k.echoed.IsZero() || k.Usual == 0:
		k.Usual = k.Delay
	case k.probes < usualAfter:
		k.Usual = min(k.Usual, k.Delay)
	default:
		k.Usual += time.Duration(float64(k.Delay-k.Usual) * min(share, 1))
	}
	k.echoed = now
}

// Changed reports whether a state is another since the last call.
func (m *Machine) Changed() bool {
	was := m.changed
	m.changed = false
	return was
}

// Results returns what is known of each path, in order.
func (m *Machine) Results() []Result {
	list := make([]Result, 0, len(m.tracks))
	for _, k := range m.tracks {
		list = append(list, k.Result)
	}
	slices.SortFunc(list, func(a, b Result) int { return a.Path.Compare(b.Path) })
	return list
}
