package accounts

import (
	"fmt"

	"heddle/internal/observe"
)

// Books are the counters of a port that must add up.
type Books struct {
	Received, Delivered, Dropped uint64
	// Host are the host's own frames that were looked up, HostFates those of them that were kept or dropped: the
	// rest left.
	Host, HostFates uint64
	// FromPnic are the bytes of copies of frames that came on an uplink, part of Out: all bytes handed to the port.
	FromPnic, Out uint64
}

// Of extracts the books from a port's counters.
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
	// Open: frames passed while the counters were read; the number of those without a fate lies between two bounds,
	// and may be none.
	Open State = "open"
	// Broken: frames are missing or have more than one fate, no matter how many were under way.
	Broken State = "broken"
)

// Fault names what does not add up. "" means that nothing is wrong.
type Fault string

// The faults of accounts.
const (
	// FateMissing: frames received from the port were neither delivered nor dropped.
	FateMissing Fault = "fate-missing"
	// FrameMissing: frames were delivered or dropped that were never received from the port.
	FrameMissing Fault = "frame-missing"
	// HostFrameMissing: frames of the host were kept or dropped that it never sent.
	HostFrameMissing Fault = "host-frame-missing"
	// BytesMissing: more bytes were delivered to the port from uplinks than were delivered to it in all.
	BytesMissing Fault = "bytes-missing"
)

// Verdict is what two readings show.
type Verdict struct {
	State State
	// Least and Most bound the number of received frames that have no fate yet; below 0 there are fates without a
	// frame.
	Least, Most int64
	// Fault describes what does not add up, for people; FaultCode is the same for programs.
	Fault     string
	FaultCode Fault
}

// Judge compares two readings of a port, of which the second began after the first had ended. underWay is how many
// frames the switch can have received from the port without having decided on them: one per CPU.
//
// A reading takes a while, and its counters are not of one instant; but each counter only grows. So at the instant
// between the two readings, the number of frames received is at least what the first reading says and at most what the
// second says, and so is the number of fates. The difference of the two is therefore bounded by comparing each with the
// other reading's, in whatever order the counters were read. If the bounds exclude everything from 0 to underWay, the
// accounts are broken. If the two readings are equal, the bounds are one value: for an idle port the check is exact.
func Judge(first, second Books, underWay uint64) (v Verdict, ok bool) {
	if !grown(first, second) { // it is another port, or its counters began anew
		return Verdict{}, false
	}
	v = Verdict{State: Open, Least: int64(first.Received) - int64(second.fates()),
		Most: int64(second.Received) - int64(first.fates())}
	switch {
	case v.Least > int64(underWay):
		v.fault(FateMissing, "%d frames received from it were neither delivered nor dropped", v.Least)
	case v.Most < 0:
		v.fault(FrameMissing, "%d frames were delivered or dropped that were never received from it", -v.Most)
	case first.HostFates > second.Host:
		v.fault(HostFrameMissing, "%d frames of the host were kept or dropped that it never sent",
			first.HostFates-second.Host)
	case first.FromPnic > second.Out:
		v.fault(BytesMissing, "%d bytes were handed to it from uplinks, and only %d altogether",
			first.FromPnic, second.Out)
	case v.Least == 0 && v.Most == 0 && first == second:
		v.State = Exact
	}
	return v, true
}

func (v *Verdict) fault(code Fault, format string, args ...any) {
	v.State, v.FaultCode, v.Fault = Broken, code, fmt.Sprintf(format, args...)
}

func (b Books) fates() uint64 { return b.Delivered + b.Dropped }

// grown says that no counter became less.
func grown(a, b Books) bool {
	return a.Received <= b.Received && a.Delivered <= b.Delivered && a.Dropped <= b.Dropped && a.Host <= b.Host &&
		a.HostFates <= b.HostFates &&
		a.FromPnic <= b.FromPnic && a.Out <= b.Out
}

// AtRest returns what does not add up in the counters of an idle port.
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
