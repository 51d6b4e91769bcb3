package audit

import "fmt"

// Checker checks the lines of one series somewhere else than in the log itself: in a copy, or as they were exported.
type Checker struct {
	v    verifier
	seen map[link]bool // of exported lines, which may arrive twice; nil for a copy
}

// NewChecker makes a checker for a series. head is the link of a line that somebody noted, "" for none. exported lines
// may come twice, and begin with any.
func NewChecker(series, head string, exported bool) *Checker {
	c := &Checker{v: verifier{Chain: Chain{Series: series}, head: head, part: exported}}
	if exported {
		c.seen = map[link]bool{}
	}
	return c
}

// Line checks the next line. where it is is for people.
func (c *Checker) Line(where string, line []byte) {
	if _, k, ok := split(line); ok && c.seen != nil {
		if c.seen[k] {
			return
		}
		c.seen[k] = true
	}
	if fault := c.v.line(line); fault != "" && len(c.v.Faults) < mostFaults {
		c.v.Faults = append(c.v.Faults, fmt.Sprintf("%s: %s", where, fault))
	}
}

// Chain is what the check has found.
func (c *Checker) Chain() Chain { return c.v.Chain }
