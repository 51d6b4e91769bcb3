package moves

import "time"

// Here is a move of which this host is the target.
type Here struct {
	Track
	// Wait is the number of the port's wait that the move is for.
	Wait uint32 `json:"wait"`
	// Known is the highest generation that the host heard of.
	Known uint64 `json:"known,omitzero"`
	// Heard is the highest number of a copy of Host that was dealt with.
	Heard uint64 `json:"heard,omitzero"`
	// Parted: the guest has arrived by this move, and has left since.
	Parted bool `json:"parted,omitzero"`
	// Since is when the guest arrived, or the port was gone; zero before.
	Since time.Time `json:"since,omitzero"`
}

// Begin returns the move of a port that begins to wait for its guest.
func Begin(move string, wait uint32, at time.Time) *Here {
	h := &Here{Track: Track{Move: move, Side: Target}, Wait: wait}
	h.Reached(Prepared, at, "the port waits for its guest")
	return h
}

// Over reports whether the port is gone, or no longer waits for that move.
func (h *Here) Over() bool { return h.Phase == Cancelled || h.Phase == Released }

// Came is the highest generation that the host heard of as the target of a move by which the guest has come; 0 for
// none.
func (h *Here) Came() uint64 {
	if h == nil || !h.Arrived() {
		return 0
	}
	return h.Known
}

// Arrived reports whether the guest has arrived.
func (h *Here) Arrived() bool { return h.Phase == Active }

// Expected takes in which host may call, as a controller says, and the highest generation that the controllers know.
// drop: what another host gave no longer counts.
func (h *Here) Expected(host, name string, generation uint64) (changed, drop bool) {
	if generation = Believed(generation); generation > h.Known {
		h.Known, changed = generation, true
	}
	if host == "" || h.Over() || h.Parted || host == h.Host && name == h.HostName {
		return changed, false
	}
	// What is here from the host that the guest left is not given up for another word. Nothing is here yet where the
	// controllers named a wrong host, as one does that has not heard of the last move: that word is not the last.
	if host != h.Host && (h.Last || h.Arrived() && h.Confirmed > 0) {
		return changed, false
	}
	if host != h.Host {
		drop, h.Heard, h.Confirmed = h.Confirmed > 0, 0, 0
	}
	h.Host, h.HostName = host, name
	return true, drop
}

// Take is what the target does with a copy.
type Take uint8

// What it may do.
const (
	// Ignore: the copy is a repeated or an older one, or of no use.
	Ignore Take = iota
	// Keep: the copy replaces the earlier one.
	Keep
	// Drop: the guest runs at the source again, and what was copied no longer counts.
	Drop
)

// Copy is a copy as it arrives, without what it carries.
type Copy struct {
	Number     uint64
	Says       Says
	Generation uint64 // of the port at the source
}

// Takes returns what is to be done with a copy; own is the generation of the port here. Dealt is called once that is
// done and on disk.
func (h *Here) Takes(c Copy, own uint64) Take {
	switch {
	case h.Over() || c.Number <= h.Heard:
		return Ignore
	case h.Arrived() && c.Says != Stops:
		return Ignore // what the source had when the guest stopped there is still to come, and nothing else counts
	case h.Parted && c.Generation >= own:
		return Ignore // the guest has been there since
	case c.Says == Resumes:
		return Drop
	}
	return Keep
}

// Dealt records that a copy was dealt with as Takes says.
func (h *Here) Dealt(c Copy, own uint64, at time.Time) {
	take := h.Takes(c, own)
	if h.Over() || c.Number <= h.Heard {
		return
	}
	h.Heard = c.Number
	switch take {
	case Keep:
		h.Known = max(h.Known, Believed(c.Generation))
		h.Confirmed, h.Last, h.Copied = c.Number, c.Says == Stops, at
		switch {
		case h.Arrived():
		case h.Last:
			h.Reached(Stopped, at, "the guest has stopped at the source; the last copy is here")
		default:
			h.Reached(Copied, at, "a copy is here; the guest runs at the source")
		}
	case Drop:
		h.Known = max(h.Known, Believed(c.Generation))
		h.Confirmed, h.Last = 0, false
		h.Reached(Prepared, at, "the guest runs at the source again; what was copied is dropped")
	}
}

// Activated records that the guest runs here, also when it had left and has come back.
func (h *Here) Activated(at time.Time, text string) bool {
	if h.Over() || h.Arrived() && !h.Parted {
		return false
	}
	if h.Parted = false; h.Reached(Active, at, text) {
		h.Since = at
	}
	return true
}

// Parts records that the guest has left this host again.
func (h *Here) Parts() (changed bool) {
	changed = h.Arrived() && !h.Parted
	h.Parted = h.Parted || changed
	return changed
}

// Gone records that the port is gone, or waits no longer for that move.
func (h *Here) Gone(at time.Time, text string) {
	if h.Over() {
		return
	}
	end := Cancelled
	if h.Arrived() {
		end = Released
	}
	h.Since = at
	h.Reached(end, at, text)
}

// Answer is what the source is told; own is the generation of the port here.
func (h *Here) Answer(own uint64) Answer {
	switch {
	case h.Over():
		return Answer{Confirmed: h.Heard, Phase: Cancelled}
	case h.Arrived():
		return Answer{Confirmed: h.Heard, Phase: Active, Generation: own}
	}
	return Answer{Confirmed: h.Heard, Phase: Prepared}
}

// Times for which a target listens after the guest has arrived or the port is gone: the source may have more to give or
// to learn. No port depends on them.
const (
	listenActive = 10 * time.Minute
	listenGone   = 30 * time.Second
)

// Listens reports whether the target still takes calls for the move.
func (h *Here) Listens(now time.Time) bool {
	if h.Over() {
		return now.Sub(h.Since) < listenGone
	}
	return !h.Arrived() || now.Sub(h.Since) < listenActive
}

// Offers reports whether the host offers the move to its controllers: they name the source, which may have more to
// give.
func (h *Here) Offers(now time.Time) bool {
	return !h.Over() && !h.Parted && !(h.Last && h.Arrived()) && h.Listens(now)
}
