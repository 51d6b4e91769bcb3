package portstate

import (
	"fmt"
	"math"
	"time"

	hostv1 "heddle/api/heddle/host/v1"
	"heddle/internal/agent/part"
	"heddle/internal/agent/state"
	"heddle/internal/observe"
	"heddle/internal/plan"
)

// Bounds of what parts of the agent give to a port. With the MACs of a port, everything fits into one message.
const (
	maxParts     = 16
	maxPartBytes = 2 << 20
	// bundleBytes is what MACs and parts have together, macBytes what a MAC has at most.
	bundleBytes = 3 << 20
	macBytes    = 13
	maxChunks   = 256 // of a part
)

// Parts are the parts of the agent that have something of ports.
type Parts interface {
	Dumps(id plan.PortID) ([]part.Dump, error)
	Portable(name string) (part.Portable, bool)
}

// Read is what of a port takes long to read: it is read beside the loop.
type Read struct {
	MACs  []observe.MACEntry
	Parts []PartState
	// Unread is why something of parts could not be read.
	Unread []error
}

// PartState is what a part has of a port.
type PartState struct {
	Part   string
	Chunks [][]byte
	// Age is how long ago the chunks were read. LeftOut is how many more there were.
	Age     time.Duration
	LeftOut int
}

// Aged makes everything that much older.
func (r *Read) Aged(by time.Duration) {
	for i := range r.MACs {
		r.MACs[i].Idle += by.Seconds()
	}
	for i := range r.Parts {
		r.Parts[i].Age += by
	}
}

// Reads returns what reads, beside the loop, the MACs that were learned at the port and what parts have of it; nil
// where there is nothing. A part that cannot read what it has keeps nothing else from travelling.
func (cr *Carrier) Reads(id plan.PortID) (func() (Read, error), error) {
	macs, err := cr.host.Kernel().Travel().MACs(id)
	if err != nil {
		return nil, err
	}
	dumps, err := cr.host.Parts.Dumps(id)
	if err != nil {
		cr.host.Complain("read what parts of the agent have of a port that leaves this host", err)
	}
	if macs == nil && len(dumps) == 0 {
		return nil, nil
	}
	return func() (r Read, err error) {
		if macs != nil {
			if r.MACs, err = macs(); err != nil {
				return r, err
			}
		}
		for _, d := range dumps {
			chunks, err := d.Read()
			if err != nil {
				r.Unread = append(r.Unread, fmt.Errorf("%s: %w", d.Part, err))
				continue
			}
			r.Parts = append(r.Parts, PartState{Part: d.Part, Chunks: chunks})
		}
		return r, nil
	}, nil
}

// fitting are the first chunks of a part that are taken where there is so much room, how many are left out, and the
// room that is left.
func fitting(chunks [][]byte, room int) (taken [][]byte, leftOut, left int) {
	for i, c := range chunks {
		if len(c) == 0 || len(c) > part.MaxChunk || len(c) > room || i == maxChunks {
			return taken, len(chunks) - i, room
		}
		taken, room = append(taken, c), room-len(c)
	}
	return taken, 0, room
}

// packParts makes the message of the parts, with as many chunks as there is room for beside so many MACs. A part's
// chunks are taken in their order, until one does not fit.
func packParts(list []PartState, macs int) (out []*hostv1.PartState) {
	room := min(maxPartBytes, bundleBytes-macBytes*macs)
	for _, p := range list[:min(maxParts, len(list))] {
		m := &hostv1.PartState{Part: p.Part, Age: millis(p.Age), LeftOut: uint32(min(p.LeftOut, math.MaxUint32))}
		var more int
		m.Chunks, more, room = fitting(p.Chunks, room)
		m.LeftOut += uint32(more)
		out = append(out, m)
	}
	return out
}

// partsOf reads the message of the parts; unknown says what of it is not taken, for people.
func partsOf(list []*hostv1.PartState) (out []PartState, unknown []string) {
	room, seen := maxPartBytes, map[string]bool{}
	for _, m := range list[:min(maxParts, len(list))] {
		name := m.GetPart()
		if !plain(name) || seen[name] {
			continue
		}
		seen[name] = true
		p := PartState{Part: name, Age: time.Duration(m.GetAge()) * time.Millisecond, LeftOut: int(m.GetLeftOut())}
		var more int
		p.Chunks, more, room = fitting(m.GetChunks(), room)
		p.LeftOut += more
		if p.LeftOut > 0 {
			unknown = append(unknown, fmt.Sprintf("%s: %d of %d portions, which have no room in a move", name,
				p.LeftOut, p.LeftOut+len(p.Chunks)))
		}
		if len(p.Chunks) > 0 {
			out = append(out, p)
		}
	}
	return out, unknown
}

// keepParts decides in the loop what of parts' state the port gets when its guest runs here; g gets the names, and what
// is left out.
func (cr *Carrier) keepParts(g *state.Goods, list []PartState) {
	for _, p := range list {
		size := 0
		for _, c := range p.Chunks {
			size += len(c)
		}
		here, is := cr.host.Parts.Portable(p.Part)
		switch {
		case !is:
			g.LeftOut = append(g.LeftOut, p.Part+", which this host's version of Heddle does not have")
		case size > here.Room(g.ID):
			g.LeftOut = append(g.LeftOut, fmt.Sprintf("%s: %d bytes, and this host has room for %d", p.Part, size,
				here.Room(g.ID)))
		default:
			g.Parts = append(g.Parts, p.Part)
		}
	}
}

// land gives a port what its parts brought, beside the loop: each chunk in a turn of its own. What a part does not take
// is complained of once, and the rest of it is left out.
func (cr *Carrier) land(g state.Goods, list []PartState) {
	for _, p := range list {
		for _, c := range p.Chunks {
			taken := false
			err := cr.inLoop(func() {
				here, is := cr.host.Parts.Portable(p.Part)
				if now := cr.of(g.ID); !is || now == nil || !now.Installed {
					return // it is gone again
				}
				if err := here.Land(g.ID, c, p.Age+max(0, time.Since(g.At))); err != nil {
					cr.host.Complain("give a port what came with it for "+p.Part, err)
					return
				}
				taken = true
			})
			if err != nil {
				return // the agent is stopping
			}
			if !taken {
				break
			}
		}
	}
}
