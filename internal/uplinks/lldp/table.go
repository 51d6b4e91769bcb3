package lldp

import (
	"slices"
	"time"

	"heddle/internal/plan"
)

// MaxNeighbours bounds a Table: one port has one neighbour, or a few behind a repeater. With frames of at most 1,500
// bytes it also bounds memory.
const MaxNeighbours = 8

// Neighbour is a system that announced itself on a port.
type Neighbour struct {
	PDU    PDU
	Source plan.MAC
	Since  time.Time // first heard
	Heard  time.Time // last heard
	// told: the neighbour was reported as New. A neighbour that appeared while the table was full is reported when it
	// is heard again.
	told bool
}

// A sender that floods a port with invented names does not repeat them: a neighbour is established when it has been
// heard a second time, at least the least time later, and as long as it is heard at least that often, whatever its time
// to live. The quickest succession of LLDP is a second, the usual time to live 120 s (IEEE 802.1AB, 9.2.5: msgFastTx,
// msgTxHold × msgTxInterval).
const (
	establishedAfter = time.Second
	establishedFor   = 2 * time.Minute
)

func (n *Neighbour) established(now time.Time) bool {
	return n.Heard.Sub(n.Since) >= establishedAfter && now.Sub(n.Heard) <= establishedFor
}

// expires returns when the neighbour is removed unless it is heard again.
func (n *Neighbour) expires() time.Time { return n.Heard.Add(time.Duration(n.PDU.TTL) * time.Second) }

// Table holds the neighbours of one port. The zero Table is empty. In a full table a new neighbour replaces the one
// that was heard the longest ago among those that are not established; if all are established, it is refused.
type Table struct {
	list []Neighbour
	// Refused counts PDUs of new neighbours that found the table full, whether they replaced another or not.
	Refused uint64
}

// Change is the effect of a PDU on a Table.
type Change uint8

// The effects of a PDU.
const (
	Same     Change = iota // a known neighbour without changes
	New                    // a neighbour that was not known
	Updated                // a known neighbour with changes
	Gone                   // a known neighbour said goodbye
	Rejected               // the table is full of established neighbours, or an unknown one said goodbye
	Unsure                 // a new neighbour replaced another one; it is New when it is heard again
)

// Learn processes a PDU. A neighbour is identified by its chassis and port together. gone is a neighbour that was New
// and was replaced, nil for none.
func (t *Table) Learn(now time.Time, source plan.MAC, p PDU) (c Change, gone *Neighbour) {
	i := slices.IndexFunc(t.list, func(n Neighbour) bool { return sameSender(n.PDU, p) })
	switch {
	case i < 0 && p.TTL == 0:
		return Rejected, nil
	case p.TTL == 0:
		told := t.list[i].told
		t.list = slices.Delete(t.list, i, i+1)
		if !told {
			return Rejected, nil
		}
		return Gone, nil
	case i >= 0:
		return t.list[i].again(now, source, p), nil
	}
	n := Neighbour{PDU: p, Source: source, Since: now, Heard: now, told: len(t.list) < MaxNeighbours}
	if n.told {
		t.list = append(t.list, n)
		return New, nil
	}
	t.Refused++
	at := t.leastSure(now)
	if at < 0 {
		return Rejected, nil
	}
	if t.list[at].told {
		way := t.list[at]
		gone = &way
	}
	t.list = append(slices.Delete(t.list, at, at+1), n)
	return Unsure, gone
}

// again processes a PDU of a known neighbour.
func (n *Neighbour) again(now time.Time, source plan.MAC, p PDU) Change {
	changed := n.Source != source || !sameContent(n.PDU, p)
	n.PDU, n.Source, n.Heard = p, source, now
	switch {
	case !n.told && !n.established(now):
		return Unsure
	case !n.told:
		n.told = true
		return New
	case changed:
		return Updated
	}
	return Same
}

// leastSure returns the index of the neighbour that a new one replaces, -1 if there is none.
func (t *Table) leastSure(now time.Time) int {
	at := -1
	for i := range t.list {
		if !t.list[i].established(now) && (at < 0 || t.list[i].Heard.Before(t.list[at].Heard)) {
			at = i
		}
	}
	return at
}

func sameSender(a, b PDU) bool {
	return a.Chassis.Subtype == b.Chassis.Subtype && slices.Equal(a.Chassis.Value, b.Chassis.Value) &&
		a.Port.Subtype == b.Port.Subtype && slices.Equal(a.Port.Value, b.Port.Value)
}

// sameContent compares the encodings of both; PDUs that cannot be encoded count as different.
func sameContent(a, b PDU) bool {
	x, errX := a.Encode()
	y, errY := b.Encode()
	return errX == nil && errY == nil && slices.Equal(x, y)
}

// Sweep removes the neighbours whose time is over and returns those of them that were New.
func (t *Table) Sweep(now time.Time) []Neighbour {
	var gone []Neighbour
	t.list = slices.DeleteFunc(t.list, func(n Neighbour) bool {
		over := !now.Before(n.expires())
		if over && n.told {
			gone = append(gone, n)
		}
		return over
	})
	return gone
}

// Next returns when Sweep will remove something; zero: never.
func (t *Table) Next() time.Time {
	var next time.Time
	for i := range t.list {
		if at := t.list[i].expires(); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// Neighbours returns the known neighbours, the one known for the longest first.
func (t *Table) Neighbours() []Neighbour { return slices.Clone(t.list) }
