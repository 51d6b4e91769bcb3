package lldp

import (
	"slices"
	"time"

	"heddle/internal/plan"
)

// MaxNeighbours bounds a Table: one port has one neighbour, or a few behind a repeater. With frames of 1,500 bytes it bounds memory.
const MaxNeighbours = 8

// Neighbour is one that told of itself on a port.
type Neighbour struct {
	PDU    PDU
	Source plan.MAC
	Since  time.Time // first heard
	Heard  time.Time // last heard
}

// expires is when the neighbour is forgotten unless it is heard again.
func (n *Neighbour) expires() time.Time { return n.Heard.Add(time.Duration(n.PDU.TTL) * time.Second) }

// Table holds the neighbours of one port. The zero Table is empty.
type Table struct {
	list []Neighbour
	// Refused counts PDUs of new neighbours that found the table full.
	Refused uint64
}

// Change is what a PDU did to a Table.
type Change uint8

// What a PDU did.
const (
	Same     Change = iota // the neighbour is known and told nothing new
	New                    // a neighbour nobody knew
	Updated                // a known one told something new
	Gone                   // a known one said goodbye
	Rejected               // the table is full, or a stranger said goodbye
)

// Learn takes a PDU in. A neighbour is known by its chassis and port together.
func (t *Table) Learn(now time.Time, source plan.MAC, p PDU) Change {
	i := slices.IndexFunc(t.list, func(n Neighbour) bool { return sameSender(n.PDU, p) })
	switch {
	case i < 0 && p.TTL == 0:
		return Rejected
	case p.TTL == 0:
		t.list = slices.Delete(t.list, i, i+1)
		return Gone
	case i >= 0:
		n := &t.list[i]
		change := Same
		if n.Source != source || !sameContent(n.PDU, p) {
			change = Updated
		}
		n.PDU, n.Source, n.Heard = p, source, now
		return change
	case len(t.list) >= MaxNeighbours:
		t.Refused++
		return Rejected
	}
	t.list = append(t.list, Neighbour{PDU: p, Source: source, Since: now, Heard: now})
	return New
}

func sameSender(a, b PDU) bool {
	return a.Chassis.Subtype == b.Chassis.Subtype && slices.Equal(a.Chassis.Value, b.Chassis.Value) &&
		a.Port.Subtype == b.Port.Subtype && slices.Equal(a.Port.Value, b.Port.Value)
}

// sameContent compares what both would send; what cannot be sent differs.
func sameContent(a, b PDU) bool {
	x, errX := a.Encode()
	y, errY := b.Encode()
	return errX == nil && errY == nil && slices.Equal(x, y)
}

// Sweep forgets the neighbours whose time is over and returns them.
func (t *Table) Sweep(now time.Time) []Neighbour {
	var gone []Neighbour
	t.list = slices.DeleteFunc(t.list, func(n Neighbour) bool {
		over := !now.Before(n.expires())
		if over {
			gone = append(gone, n)
		}
		return over
	})
	return gone
}

// Next is when Sweep finds something; zero: never.
func (t *Table) Next() time.Time {
	var next time.Time
	for i := range t.list {
		if at := t.list[i].expires(); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// Neighbours are those known, the one known for the longest first.
func (t *Table) Neighbours() []Neighbour { return slices.Clone(t.list) }
