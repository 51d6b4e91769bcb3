package moves

import (
	"slices"
	"time"
)

// Away is a move of which this host is the source.
type Away struct {
	Track
	Addresses []string `json:"addresses,omitzero"`
	// Reserved is the highest number that copies may have before the record is written again; Sent is that of the
	// newest copy. A host that starts again goes on above what it reserved, so that a number is never given twice.
	Reserved uint64 `json:"reserved,omitzero"`
	Sent     uint64 `json:"-"`
	// Silent: the port has become silent because the guest has left. Tells: the guest runs here again, and the target
	// has to be told. Mark is the number of the newest copy when that came about: only later ones tell it.
	Silent bool   `json:"silent,omitzero"`
	Wait   uint32 `json:"wait,omitzero"` // the number of the port's wait that made it silent
	Tells  bool   `json:"tells,omitzero"`
	Mark   uint64 `json:"mark,omitzero"`
	// Generation is that with which the port served its guest before it became silent.
	Generation uint64 `json:"generation,omitzero"`
	// Elsewhere: the target says that the guest runs there. Heard is the highest generation that it told.
	Elsewhere bool   `json:"elsewhere,omitzero"`
	Heard     uint64 `json:"heard,omitzero"`
	// Left: the port is gone here. Goods is what it had, until the target has it.
	Left  bool   `json:"left,omitzero"`
	Goods []byte `json:"goods,omitzero"`
	// Unlisted: the controllers no longer order the move.
	Unlisted bool `json:"unlisted,omitzero"`
}

// reserve is how many numbers are reserved at once.
const reserve = 1024

// Order is what a controller says about a move of which this host is the source.
type Order struct {
	Move, Host, HostName string
	Addresses            []string
}

// Ordered takes in an order for a port whose record of a move is a, nil for none, and of whose guest the source sees g.
// It returns the record, nil for none.
func Ordered(a *Away, o Order, g Guest, at time.Time) (_ *Away, changed bool) {
	switch {
	case a == nil && g == GuestGone:
		return nil, false // there is nothing to give
	case a == nil || a.Move != o.Move:
		return a.anew(o, g, at)
	case a.Over() || a.Host != o.Host: // a move has one target
		return a, false
	}
	changed = a.Unlisted || a.HostName != o.HostName || !slices.Equal(a.Addresses, o.Addresses)
	a.HostName, a.Addresses, a.Unlisted = o.HostName, o.Addresses, false
	return a, changed
}

// anew is a record of another move than a. What the port had when it went, and nobody has yet, goes to the new target.
func (a *Away) anew(o Order, g Guest, at time.Time) (_ *Away, changed bool) {
	next := &Away{Track: Track{Move: o.Move, Host: o.Host, HostName: o.HostName, Side: Source}, Addresses: o.Addresses,
		Reserved: reserve}
	next.Reached(Prepared, at, "the port waits for the guest at "+o.HostName)
	if g != GuestGone {
		return next, true
	}
	if a.Over() || !a.Left {
		return a, false
	}
	next.Silent, next.Left, next.Wait, next.Generation, next.Goods = true, true, a.Wait, a.Generation, a.Goods
	next.Reached(Stopped, at, "the port is gone: its guest does not run here any more")
	return next, true
}

// Resumed prepares the record of an agent that has started: numbers that its predecessor may have used are left out.
func (a *Away) Resumed() { a.Sent = a.Reserved }

// Over reports whether the move is over for the source.
func (a *Away) Over() bool { return a.Phase == Released || a.Phase == Cancelled }

// Guest is what the source sees of its guest.
type Guest uint8

// What it may see.
const (
	GuestUnsure Guest = iota // it is not known where the guest runs
	GuestRuns                // it runs here
	GuestLeft                // it has left, and the port is silent
	GuestGone                // the port is gone, or waits for another arrival of its guest
)

// See takes in what the source sees of its guest now; wait is the number of the port's last wait, generation that with
// which the port served its guest last. pack: what the port
// has is to be put into Goods at once, for the last copy, because the guest has just stopped here.
func (a *Away) See(g Guest, wait uint32, generation uint64, at time.Time) (changed, pack bool) {
	switch {
	case a.Over() || g == GuestUnsure || a.Left:
		return false, false
	case g == GuestLeft && (!a.Silent || a.Wait != wait):
		a.stops(wait, generation)
		a.Reached(Stopped, at, "the port is silent: its guest has left")
		return true, true
	case g == GuestRuns && a.Silent:
		a.Silent, a.Tells, a.Last, a.Mark, a.Goods = false, true, false, a.Sent, nil
		a.Reached(Prepared, at, "the guest runs here again")
		return true, false
	case g == GuestGone && !a.Silent:
		a.stops(wait, generation)
		a.Left = true
		a.Reached(Stopped, at, "the port is gone: its guest does not run here any more")
		return true, true
	case g == GuestGone:
		a.Left = true
		a.leave(at)
		return true, false
	}
	return false, false
}

func (a *Away) stops(wait uint32, generation uint64) {
	a.Generation = generation
	a.Silent, a.Wait, a.Tells, a.Last, a.Mark, a.Goods = true, wait, false, false, a.Sent, nil
}

// Packed takes in what See asked for; nil where it could not be read.
func (a *Away) Packed(goods []byte, at time.Time) {
	a.Goods = goods
	a.leave(at)
}

// TakesOver takes in what was seen of the guest while another move was in the place of this one: was is that as it was
// before it ended.
func (a *Away) TakesOver(was Away, at time.Time) {
	if a.Over() || a.Left || !was.Silent && !was.Left {
		return // the next look tells the rest
	}
	if !a.Silent || a.Wait != was.Wait {
		a.stops(was.Wait, was.Generation)
		a.Goods = was.Goods
		a.Reached(Stopped, at, "the port is silent: its guest has left")
	}
	if was.Left {
		a.Left = true
		a.leave(at)
	}
}

// leave ends the move of a port that is gone when nothing is left to give.
func (a *Away) leave(at time.Time) {
	if a.Left && (a.Last || a.Goods == nil) {
		a.ends(Released, at, "the port is gone here")
	}
}

// Renewed takes in that what the port has is another although the guest has left: the host it came from has given a
// later copy. The target gets it too.
func (a *Away) Renewed(goods []byte) bool {
	if a.Over() || !a.Silent || a.Left {
		return false
	}
	a.Last, a.Mark, a.Goods = false, a.Sent, goods
	return true
}

func (a *Away) ends(p Phase, at time.Time, text string) {
	a.Goods, a.Tells = nil, false
	a.Reached(p, at, text)
}

// Send is one message to the target: a copy, without what it carries.
type Send struct {
	Copy
	// Asks: the target has everything; the message only asks for its phase, and carries nothing.
	Asks bool
	// Urgent: the guest stands still meanwhile, or the target has to drop what it has.
	Urgent bool
}

// Next returns the next message to the target, and takes its number; none where nothing is to be said. generation is
// the port's at present. reserved: the
// record has to be on disk before the message is sent.
func (a *Away) Next(generation uint64) (_ Send, reserved, ok bool) {
	s := Send{Copy: Copy{Says: Runs, Generation: generation}}
	switch {
	case a.Over():
		return Send{}, false, false
	case a.Silent && a.Last && a.Elsewhere:
		return Send{}, false, false
	case a.Silent && a.Last:
		return Send{Copy: Copy{a.Confirmed, Stops, a.Generation}, Asks: true}, false, true
	case a.Silent:
		s.Says, s.Generation, s.Urgent = Stops, a.Generation, true
	case a.Tells:
		s.Says, s.Urgent = Resumes, true
	case a.Elsewhere:
		return Send{}, false, false // the guests of both run: a conflict, which others tell
	}
	if a.Sent >= a.Reserved {
		a.Reserved, reserved = a.Sent+reserve, true
	}
	a.Sent++
	s.Number = a.Sent
	return s, reserved, true
}

// Carries reports whether the next message to the target carries what the port has, which is still there to be read.
func (a *Away) Carries() bool {
	switch {
	case a.Over() || a.Left:
		return false
	case a.Silent:
		return !a.Last
	}
	return !a.Tells && !a.Elsewhere
}

// Answered takes in the target's answer to a message.
func (a *Away) Answered(s Send, by Answer, at time.Time) (changed bool) {
	if a.Over() {
		return false
	}
	a.Problem = ""
	if by.Confirmed > a.Sent && by.Confirmed < maxGeneration { // of an earlier life of this host
		a.Sent = by.Confirmed
		a.Reserved = max(a.Reserved, a.Sent+reserve)
		return true
	}
	if by.Phase == Cancelled {
		a.ends(Cancelled, at, "the port is gone at "+a.HostName)
		return true
	}
	if a.confirmed(s, by, at) {
		changed = true
	}
	if by.Phase == Active && (!a.Elsewhere || by.Generation > a.Heard) {
		a.Elsewhere, a.Heard, changed = true, max(a.Heard, Believed(by.Generation)), true
		a.Reached(Active, at, "the guest runs at "+a.HostName)
	}
	a.leave(at)
	return changed
}

// confirmed takes in that the target has dealt with a message.
func (a *Away) confirmed(s Send, by Answer, at time.Time) bool {
	if s.Asks || by.Confirmed != s.Number {
		return false
	}
	fresh := s.Number > a.Mark
	switch {
	case s.Says == Stops && fresh && a.Silent:
		a.Last, a.Goods = true, nil
	case s.Says == Resumes && fresh && a.Tells:
		a.Tells, a.Confirmed = false, 0
		return true
	case s.Says == Resumes:
		return false
	}
	a.Confirmed, a.Copied = max(a.Confirmed, s.Number), at
	if s.Says == Runs && !a.Silent && !a.Elsewhere {
		a.Reached(Copied, at, a.HostName+" has a copy")
	}
	return true
}

// Withdrawn takes in that the controllers no longer order the move.
func (a *Away) Withdrawn() (changed bool) {
	changed = !a.Unlisted
	a.Unlisted = true
	return changed
}

// Unanswered takes in that the target does not answer. A move that no controller orders any more ends by that while the
// guest runs here.
func (a *Away) Unanswered(why string, at time.Time) (changed bool) {
	if a.Over() {
		return false
	}
	changed = a.Problem != why
	a.Problem = why
	if a.Unlisted && !a.Silent {
		a.ends(Cancelled, at, a.HostName+" does not answer, and no controller orders the move any more")
		return true
	}
	return changed
}
