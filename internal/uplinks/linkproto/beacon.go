package linkproto

import (
	"bytes"
	"crypto/rand"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/uplinks/beacon"
)

// BeaconGroup is a set of uplinks that should hear each other's beacons.
type BeaconGroup struct {
	beacon.Group
	// Delay is how long an uplink must be heard again before it is used again.
	Delay time.Duration
	// Devices are the devices of the members that have one.
	Devices map[plan.PortID]Uplink
}

// BeaconReport is the present result of beacon probing, and the changes since the previous report.
type BeaconReport struct {
	Out     map[plan.PortID]problem.Problem // why uplinks are out of use
	Changes []BeaconChange
}

// BeaconChange is a change in one switch.
type BeaconChange struct {
	Switch string
	beacon.Change
}

// mostBeacons is how many beacons are read per second and device: every host of a broadcast domain sends up to a
// hundred, and recognising another host's beacon takes less than a microsecond.
const mostBeacons = 10_000

// mostChanges bounds the changes that wait to be reported.
const mostChanges = 1024

// Beacons sends and receives beacons. Its methods may be called from any goroutine and do not wait for the network.
type Beacons struct {
	engine *engine
	log    *slog.Logger
	report func(BeaconReport)
	sender beacon.Sender

	mu      sync.Mutex
	want    []BeaconGroup
	running []*watched
	next    time.Time // when the next cycle is due, zero without a group
	out     map[plan.PortID]problem.Problem
	changes []BeaconChange // not yet reported
}

type watched struct {
	BeaconGroup
	*beacon.Machine
}

// StartBeacons starts without uplinks. Results are passed to report, one call at a time, from a goroutine of its own.
func StartBeacons(open Opener, log *slog.Logger, report func(BeaconReport)) *Beacons {
	b := &Beacons{log: log, report: report, out: map[plan.PortID]problem.Problem{}}
	// Never fails (crypto/rand).
	_, _ = rand.Read(b.sender.ID[:])
	_, _ = rand.Read(b.sender.Key[:])
	w := newWires(open, log, hearsBeacons(&b.sender))
	w.most = mostBeacons
	b.engine = newEngine(w)
	b.engine.start(b, b.deliver)
	return b
}

// Want sets which uplinks are watched. A group that shares a member with a watched group continues with its state.
func (b *Beacons) Want(groups []BeaconGroup) {
	b.mu.Lock()
	b.want = groups
	b.mu.Unlock()
	signal(b.engine.poked)
}

// Close ends the goroutines.
func (b *Beacons) Close() error {
	b.engine.stop()
	return b.engine.wires.close()
}

func (b *Beacons) deliver() {
	b.mu.Lock()
	r := BeaconReport{Out: maps.Clone(b.out), Changes: b.changes}
	b.changes = nil
	b.mu.Unlock()
	b.report(r)
}

// note records changes of a group, and reports the uplinks that are out of use if they differ from the last report.
func (b *Beacons) note(w *watched, changes []beacon.Change) {
	for _, c := range changes {
		if len(b.changes) < mostChanges {
			b.changes = append(b.changes, BeaconChange{w.Switch, c})
		}
		if !c.Why.None() {
			b.log.Warn(c.Text, "switch", w.Switch)
		} else {
			b.log.Info(c.Text, "switch", w.Switch)
		}
	}
}

// tell reports which uplinks are out of use, if that changed or if another change must be reported.
func (b *Beacons) tell() {
	out := map[plan.PortID]problem.Problem{}
	for _, w := range b.running {
		for _, m := range w.Members {
			if why := w.Out(m.ID); !why.None() {
				out[m.ID] = why
			}
		}
	}
	if !maps.EqualFunc(out, b.out, problem.Problem.Same) || len(b.changes) > 0 {
		b.out = out
		signal(b.engine.ripe)
	}
}

func (b *Beacons) frame(_ time.Time, h heard) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	read, err := b.sender.Read(h.payload)
	if err != nil { // another host's, or forged
		return b.next
	}
	for _, w := range b.running {
		for id, u := range w.Devices {
			if u.Ifindex == h.ifindex && w.Devices[read.Uplink].MAC == h.source {
				w.Heard(id, read)
			}
		}
	}
	return b.next
}

func (b *Beacons) tick(now time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next.IsZero() || now.Before(b.next) {
		return b.next
	}
	if b.next = b.next.Add(beacon.Interval); !b.next.After(now) { // the goroutine was delayed
		b.next = now.Add(beacon.Interval)
	}
	for _, w := range b.running {
		probes, changes := w.Cycle(now)
		b.note(w, changes)
		for _, p := range probes {
			b.send(w, p)
		}
	}
	b.tell()
	return b.next
}

func (b *Beacons) send(w *watched, p beacon.Beacon) {
	u := w.Devices[p.Uplink]
	r, ok := b.engine.wires.conns[u.Ifindex]
	if !ok {
		return // opening failed, and the error was reported
	}
	if err := r.Send(b.sender.Frame(p, u.MAC)); err != nil {
		b.log.Debug("beacon not sent", "uplink", p.Uplink.String(), "vlan", p.VLAN, "err", err)
	}
}

// adopt replaces the groups by the wanted ones.
func (b *Beacons) adopt(now time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.running
	b.running = nil
	sockets := map[uint32]bool{}
	if err := b.engine.wires.hear(senders(b.want)); err != nil {
		b.log.Warn("hear the beacons of other uplinks", "err", err)
	}
	for _, g := range b.want {
		w := &watched{BeaconGroup: g}
		if i := slices.IndexFunc(before, w.continues); i >= 0 {
			w.Machine = before[i].Machine
			w.Set(g.Group, g.Delay)
			b.link(w, before[i].Devices)
			before = slices.Delete(slices.Clone(before), i, i+1)
		} else {
			w.Machine = beacon.New(g.Group, g.Delay)
			b.link(w, nil)
		}
		b.running = append(b.running, w)
		for id, u := range g.Devices {
			sockets[u.Ifindex] = true
			if err := b.engine.wires.use(u.Ifindex); err != nil {
				b.log.Warn("no beacons on an uplink", "uplink", id.String(), "err", err)
			}
		}
	}
	if err := b.engine.wires.keep(sockets); err != nil {
		b.log.Warn("close beacon sockets", "err", err)
	}
	b.tell()
	switch {
	case len(b.running) == 0:
		b.next = time.Time{}
	case b.next.IsZero():
		b.next = now
	}
	return b.next
}

// senders returns the source addresses of beacons.
func senders(groups []BeaconGroup) [][6]byte {
	list := [][6]byte{}
	for _, g := range groups {
		for _, u := range g.Devices {
			list = append(list, u.MAC)
		}
	}
	slices.SortFunc(list, func(a, b [6]byte) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(list)
}

// continues reports whether the groups have a member in common.
func (w *watched) continues(o *watched) bool {
	return slices.ContainsFunc(w.Members, func(m beacon.Member) bool {
		return slices.ContainsFunc(o.Members, func(n beacon.Member) bool { return n.ID == m.ID })
	})
}

// link tells the machine which links are up; another device counts as another link.
func (b *Beacons) link(w *watched, before map[plan.PortID]Uplink) {
	for _, m := range w.Members {
		u := w.Devices[m.ID]
		if was, had := before[m.ID]; had && was.Ifindex != u.Ifindex {
			b.note(w, w.Link(m.ID, false))
		}
		b.note(w, w.Link(m.ID, u.Up))
	}
}
