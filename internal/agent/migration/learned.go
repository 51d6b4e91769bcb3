package migration

import (
	"time"

	"heddle/internal/agent/portstate"
	"heddle/internal/agent/state"
	"heddle/internal/plan"
)

// A port may have learned a hundred thousand MACs, which are read out of the table of the whole host. That takes too
// long for the loop: the goroutine that gives the copies reads them, before each copy. When the guest stops, the port's
// counters are put together at once, with the MACs as they were read last; the last copy has those that it reads then.

// heard are the MACs of a port, and what parts have of it, as they were read.
type heard struct {
	portstate.Read
	at time.Time
}

// now returns what was read with its age by now; nothing for nil.
func (h *heard) now() portstate.Read {
	if h == nil {
		return portstate.Read{}
	}
	at := time.Now()
	h.Aged(max(0, at.Sub(h.at)))
	h.at = at
	return h.Read
}

// read is what the port had when it was read last.
func (f *transfer) read() portstate.Read { return f.heard.now() }

// hear reads what takes long; read is nil where there is nothing.
func hear(read func() (portstate.Read, error)) (*heard, error) {
	h := &heard{at: time.Now()}
	if read == nil {
		return h, nil
	}
	var err error
	h.Read, err = read()
	return h, err
}

// hearsNow reads the MACs of a port in the loop: the port is about to be removed, and they were never read.
func (f *transfer) hearsNow(id plan.PortID) {
	if f.baggage == nil || f.heard != nil {
		return
	}
	read, err := f.baggage.Reads(id)
	var h *heard
	if err == nil {
		h, err = hear(read)
	}
	if err != nil {
		f.host.Complain("read the MACs of a port that leaves this host", err)
		return
	}
	f.heard = h
}

// hears reads, beside the loop, the MACs that the next copy has; nil where it has none, or they can't be read. For the
// last copy it first waits until the frames that were under way at the guest's stop are counted: what the port has is
// read after that.
func (f *transfer) hears() (fresh *heard) {
	var read func() (portstate.Read, error)
	carries, last := false, false
	err := f.host.Loop.Do(f.ctx, func() (err error) {
		t := f.part.movedBy(f.key, f)
		if t == nil || f.baggage == nil || !t.Away.Carries() {
			return nil
		}
		carries, last, f.gone = true, t.Away.Silent, false
		read, err = f.baggage.Reads(t.Port)
		return err
	})
	if err == nil && last {
		err = f.baggage.Settled()
	}
	if err == nil && carries {
		fresh, err = hear(read)
	}
	if err == nil {
		return fresh
	}
	_ = f.host.Loop.Do(f.ctx, func() error {
		f.host.Complain("read what a port has that leaves this host", err)
		return nil
	}) // it fails where the agent or the move ends
	return nil
}

// renews takes in the MACs that were just read, nil for none, and puts together the last copy with them.
func (f *transfer) renews(t *state.Travel, fresh *heard) {
	a, usable := t.Away, fresh != nil && !f.gone
	if usable {
		f.heard = fresh
	}
	if !a.Silent || a.Last || a.Goods != nil && (!usable || a.Left) {
		return
	}
	if goods := f.part.packs(t); goods != nil {
		a.Goods = goods
	}
}
