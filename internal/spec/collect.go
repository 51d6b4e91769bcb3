package spec

import (
	"cmp"
	"fmt"

	"heddle/internal/spec/printable"
)

const (
	// mostFaults is how many faults of a file are reported; the others are only counted.
	mostFaults = 200
	// maxMessage limits a fault's message, in bytes: names in it may be as long as a file.
	maxMessage = 1000
)

// collection is the faults found so far. A bounded one stores the first ones of the file, in whatever order they are
// found, so that a file with a fault in every line takes no more memory than one with some.
type collection struct {
	faults  Faults
	bounded bool
	more    int // were left out
	// last is the position after which no fault is stored any more; it applies when full.
	last position
	full bool
}

// takes reports whether a fault at p would be stored; otherwise it is counted.
func (c *collection) takes(p position) bool {
	if c.full && !p.before(c.last) {
		c.more++
		return false
	}
	return true
}

func (c *collection) add(f Fault) {
	f.Message, f.Value = printable.Short(f.Message, maxMessage), printable.Short(f.Value, 4*maxShown)
	c.faults = append(c.faults, f)
	if c.bounded && len(c.faults) == 2*mostFaults {
		c.cut()
	}
}

// cut keeps only the first mostFaults.
func (c *collection) cut() {
	c.faults.sort()
	if len(c.faults) <= mostFaults {
		return
	}
	c.more += len(c.faults) - mostFaults
	c.faults = c.faults[:mostFaults]
	end := c.faults[mostFaults-1]
	c.last, c.full = position{end.Line, end.Column}, true
}

// err is the faults, sorted, as an error; nil when there is none.
func (c *collection) err() error {
	if c.bounded {
		c.cut()
	}
	fs := c.faults
	if c.more > 0 {
		fs = append(fs, Fault{File: fs[0].File, Message: fmt.Sprintf("and %d more faults", c.more)})
		return fs // the last line has no position in the file
	}
	return fs.err()
}

func (p position) before(o position) bool {
	return cmp.Or(cmp.Compare(p.line, o.line), cmp.Compare(p.column, o.column)) < 0
}
