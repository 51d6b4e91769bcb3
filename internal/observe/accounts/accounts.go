// Package accounts says whether a port's counters add up: that every frame received from it was delivered or dropped
// with one reason (S94). It is exact about a port at rest, and bounds what frames under way can hide on one that is
// not. Pure.
package accounts

import (
	"fmt"

	"heddle/internal/observe"
)

// Books are the counters of a port that must add up.
type Books struct {
	Received, Delivered, Dropped uint64
	// Host are the frames of the host's own that were looked up, HostFates those of them kept and dropped: the rest
	// left.
	Host, HostFates uint64
	// FromPnic are bytes of the copies handed to the port of frames that came on an uplink: a part of Out, all bytes
	// handed to it.
	FromPnic, Out uint64
}

// Of are the books of a port's counters.
func Of(c *observe.Counters) Books {
	b := Books{Received: c.Received(), Delivered: c.Delivered, Dropped: c.Dropped(), Host: c.PacketsFromHost,
		HostFates: c.PacketsFromHostKept + c.PacketsFromHostDropped, FromPnic: c.BytesInFromPnic}
	for _, n := range c.BytesOut {
		b.Out += n
	}
	return b
}

// State is how a port's accounts stand.
type State string

// The states of accounts.
const (
	// Exact: nothing was under way, and every frame has its fate.
	Exact State = "exact"
	// Open: frames passed while the counters were read; those without a fate lie between two bounds that allow for
	// none.
	Open State = "open"
	// Broken: frames are missing, or have more than one fate, however many were under way.
	Broken State = "broken"
)

// Verdict is what two readings show.
type Verdict struct {
	State State
	// Least and Most bound how many frames were received that have no fate yet; below 0, fates without a frame.
	Least, Most int64
	// Fault says what does not add up.
	Fault string
}

// Judge holds two readings of a port against each other, the second begun after the first had ended. underWay is how
// many frames the switch can have received from the port without having decided on them: one a CPU.
//
// A reading takes a while, and its counters are not of one instant; but each only grows. At the instant between the two
// readings, the frames received are therefore at least what the first reading says and at most what the second says,
// and so are the fates. The difference of both is bounded by what the readings say crosswise, whatever order they were
// made in. Where the bounds leave out everything from 0 to underWay, the accounts are broken. Two equal readings leave
// one value: at rest the check is exact.
func Judge(first, second Books, underWay uint64) (v Verdict, ok bool) {
	if !grown(first, second) { // the port is another, or its counters began anew
		return Verdict{}, false
	}
	v = Verdict{State: Open, Least: int64(first.Received) - int64(second.fates()),
		Most: int64(second.Received) - int64(first.fates())}
	switch {
	case v.Least > int64(underWay):
		v.fault("%d frames received from it were neither delivered nor dropped", v.Least)
	case v.Most < 0:
		v.fault("%d frames were delivered or dropped that were never received from it", -v.Most)
	case first.HostFates > second.Host:
		v.fault("%d frames of the host were kept or dropped that it never sent", first.HostFates-second.Host)
	case first.FromPnic > second.Out:
		v.fault("%d bytes were handed to it from uplinks, and only %d altogether", first.FromPnic, second.Out)
	case v.Least == 0 && v.Most == 0 && first == second:
		v.State = Exact
	}
	return v, true
}

func (v *Verdict) fault(format string, args ...any) {
	v.State, v.Fault = Broken, fmt.Sprintf(format, args...)
}

func (b Books) fates() uint64 { return b.Delivered + b.Dropped }

// grown says that nothing became less.
func grown(a, b Books) bool {
	return a.Received <= b.Received && a.Delivered <= b.Delivered && a.Dropped <= b.Dropped && a.Host <= b.Host &&
		a.HostFates <= b.HostFates &&
		a.FromPnic <= b.FromPnic && a.Out <= b.Out
}

// AtRest returns what does not add up in the counters of a port that nothing is under way at.
func AtRest(c *observe.Counters) error {
	b := Of(c)
	v, _ := Judge(b, b, 0)
	if v.State != Exact {
		return fmt.Errorf("the accounts do not add up (%s): %+v", v.Fault, b)
	}
	return nil
}

// Better reports whether v is more precise than w.
func (v Verdict) Better(w Verdict) bool {
	rank := map[State]int{"": 0, Open: 1, Exact: 2, Broken: 3}
	if rank[v.State] != rank[w.State] {
		return rank[v.State] > rank[w.State]
	}
	return v.Most-v.Least < w.Most-w.Least
}
