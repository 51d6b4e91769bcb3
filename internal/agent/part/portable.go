package part

import (
	"errors"
	"fmt"
	"time"

	"heddle/internal/plan"
)

// Portable has something that belongs to a port and travels with it when its guest moves to another host, where the
// part of the same name gets it. It travels in chunks of MaxChunk bytes at most, in a form of the part's own, which
// parts of neighbouring versions have to understand. Each is of use without the others: a bundle has room for a bounded
// number, and the first ones are taken.
type Portable interface {
	// Dumps returns what reads the chunks of a port; nil for none. It is called in the loop; what it returns is called
	// beside the loop, and in it where the port is removed before it was ever read: it must not wait for the loop. It
	// returns chunks that nobody changes.
	Dumps(id plan.PortID) (read func() ([][]byte, error), err error)
	// Room is how many bytes of chunks a port may bring with it to this host; it is called in the loop, before the
	// guest runs here.
	Room(id plan.PortID) int
	// Land gives the port a chunk that was read that long ago. It is called in the loop once the guest runs here, each
	// chunk in a turn of its own: what the port has got here meanwhile is newer.
	Land(id plan.PortID, chunk []byte, age time.Duration) error
}

// MaxChunk is how many bytes a chunk has at most.
const MaxChunk = 64 << 10

// Dump reads what a part has of a port.
type Dump struct {
	Part string
	Read func() ([][]byte, error)
}

// Dumps returns what reads what the parts have of a port, of those that have something.
func (t *Table) Dumps(id plan.PortID) (list []Dump, err error) {
	var errs []error
	for _, n := range t.list {
		p, is := n.part.(Portable)
		if !is {
			continue
		}
		read, err := p.Dumps(id)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", n.name, err))
			continue
		}
		if read != nil {
			list = append(list, Dump{n.name, read})
		}
	}
	return list, errors.Join(errs...)
}

// Portable returns the part of a name, if something of it travels with ports.
func (t *Table) Portable(name string) (Portable, bool) {
	for _, n := range t.list {
		if n.name == name {
			p, is := n.part.(Portable)
			return p, is
		}
	}
	return nil, false
}
