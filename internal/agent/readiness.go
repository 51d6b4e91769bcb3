package agent

import (
	"maps"
	"slices"
	"sync"
	"time"

	"heddle/internal/abi"
	"heddle/internal/dataplane"
	"heddle/internal/observe"
	"heddle/internal/plan"
	"heddle/internal/uplinks/announce"
	"heddle/internal/uplinks/teaming/teams"
)

// readiness has the announcements of silent ports, made while they are silent (S50, S99): when a guest begins to run
// here, its frames are queued before the loop, the tables or the disk have a turn. The loop makes them; the reader of
// the program's reports may send them at the same time.
type readiness struct {
	mu    sync.Mutex
	ports map[uint32]*readyPort // by the numbers of their waits

	// The rest belongs to the loop. round makes announcements as if the guests of all silent ports ran; subjects are
	// these ports, macs what came with them.
	round    *teams.Round
	subjects map[plan.PortID]teams.Subject
	macs     map[plan.PortID][]observe.MACEntry
}

// readyPort is what is announced of one port as soon as its guest runs.
type readyPort struct {
	id    plan.PortID
	own   []announce.Announcement
	moved []announce.Announcement // of MACs that came with the port
	sent  bool
}

// replace replaces all that is ready. A port whose wait goes on keeps what was sent.
func (r *readiness) replace(ports map[uint32]*readyPort) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for number, was := range r.ports {
		if now := ports[number]; now != nil && was.sent {
			ports[number] = was
		}
	}
	r.ports = ports
}

// take returns what is ready for the wait of that number, once.
func (r *readiness) take(wait uint32) (id plan.PortID, frames []announce.Announcement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.ports[wait]
	if p == nil || p.sent {
		return plan.PortID{}, nil
	}
	p.sent = true
	return p.id, slices.Concat(p.own, p.moved)
}

// of returns what is ready for a silent port; the zero value for others.
func (r *readiness) of(id plan.PortID) readyPort {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.ports {
		if p.id == id {
			return *p
		}
	}
	return readyPort{}
}

// sentOwn reports whether exactly these frames were sent for the port when its wait ended.
func (r *readiness) sentOwn(id plan.PortID, frames []announce.Announcement) bool {
	p := r.of(id)
	return p.sent && len(frames) > 0 && slices.EqualFunc(frames, p.own, announce.Announcement.Equal)
}

// unsent returns those of the frames that were not sent when the port's wait ended.
func (r *readiness) unsent(id plan.PortID, frames []announce.Announcement) []announce.Announcement {
	p := r.of(id)
	if !p.sent || len(p.moved) == 0 {
		return frames
	}
	return slices.DeleteFunc(frames, func(a announce.Announcement) bool {
		return slices.ContainsFunc(p.moved, a.Equal)
	})
}

// bring makes the announcements of MACs part of what is ready for a silent port. now: its wait is over already, so they
// are due now.
func (r *readiness) bring(id plan.PortID, frames []announce.Announcement) (now bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.ports {
		if p.id == id {
			p.moved = frames
			now = now || p.sent
		}
	}
	return now
}

// makeReady makes the announcements of the ports that are silent now. It runs when teams have become active.
func (t *teaming) makeReady() {
	ready := map[uint32]*readyPort{}
	d, subjects := *t.Active().Applied, map[plan.PortID]teams.Subject{}
	for _, sw := range d.Plan.Switches {
		for _, p := range sw.Ports {
			if f, ok := d.Facts[p.ID]; ok && f.Waits() {
				subjects[p.ID] = teams.Subject{Switch: sw, Port: p}
			}
		}
	}
	t.ready.round, t.ready.subjects = nil, subjects
	maps.DeleteFunc(t.ready.macs, func(id plan.PortID, _ []observe.MACEntry) bool {
		_, silent := subjects[id]
		return !silent
	})
	if len(subjects) > 0 {
		d.Facts = maps.Clone(d.Facts)
		list := make([]teams.Subject, 0, len(subjects))
		for id, p := range subjects {
			f := d.Facts[id]
			f.Awake = true
			d.Facts[id] = f
			list = append(list, p)
		}
		t.ready.round = teams.NewRound(&d, teams.Form(&d, t.inForce), t.speakersOf(list), t.kernel.Number)
		for id, p := range subjects {
			ready[d.Facts[id].Wait] = &readyPort{id: id, own: t.ready.round.Own(p),
				moved: learned(t.ready.round, p, t.ready.macs[id])}
		}
	}
	t.ready.replace(ready)
}

// announceAwake queues what is announced of a port when its wait of that number is over. It may be called outside the
// loop; a second call for the same wait does nothing.
func (t *teaming) announceAwake(wait uint32) {
	if t.announcer == nil {
		return
	}
	id, frames := t.ready.take(wait)
	if len(frames) == 0 {
		return
	}
	at := time.Now()
	t.announcer.Change(func(q *announce.Queue) { q.Replace(id, at, frames...) })
}

// sawAwake announces the ports whose guests have just sent a frame. It runs before the loop hears of it.
func (t *teaming) sawAwake(batch []dataplane.Tell) {
	for _, e := range batch {
		if e.Kind == abi.TellAwake {
			t.announceAwake(e.Other)
		}
	}
}

// announceMoved announces MACs that came with a port: at once if its guest runs here, otherwise as soon as it does
// (S50, S79). The entries name VLANs and MACs; later ones replace those of a port that is still silent.
func (t *teaming) announceMoved(id plan.PortID, macs []observe.MACEntry) {
	if t.announcer == nil || t.Active().Applied == nil {
		return
	}
	var frames []announce.Announcement
	if p, silent := t.ready.subjects[id]; silent {
		if t.ready.macs == nil {
			t.ready.macs = map[plan.PortID][]observe.MACEntry{}
		}
		t.ready.macs[id] = macs
		frames = learned(t.ready.round, p, macs)
		if !t.ready.bring(id, frames) {
			return
		}
	} else if port := t.Active().Applied.Plan.Port(id); port != nil {
		p = teams.Subject{Switch: t.Active().Applied.Plan.Switch(id.Switch), Port: port}
		round := teams.NewRound(t.Active().Applied, t.formed(), t.speakersOf([]teams.Subject{p}), t.kernel.Number)
		frames = learned(round, p, macs)
	}
	if at := time.Now(); len(frames) > 0 {
		t.announcer.Change(func(q *announce.Queue) { q.Add(id, at, frames...) })
	}
}

// learned returns the announcements of MACs that live behind a port.
func learned(r *teams.Round, p teams.Subject, macs []observe.MACEntry) (frames []announce.Announcement) {
	if !p.Port.Policy.Learning.Enabled.V || !r.Speaks(p) {
		return nil
	}
	tags := map[announce.Tag]bool{}
	for _, m := range macs {
		tag := announce.Tag{VID: m.VLAN, AD: m.AD}
		frames = append(frames, r.Learned(p, m.MAC, tag, !tags[tag])...)
		tags[tag] = true
	}
	return frames
}
