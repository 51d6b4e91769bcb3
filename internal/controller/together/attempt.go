package together

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Attempt is a change that hosts are asked to prepare, until it is decided. It is not safe for several goroutines.
type Attempt struct {
	exceptAway bool
	hosts      map[string]standing
	why        map[string][]string
}

// standing is how far a host is.
type standing int

const (
	asked standing = iota
	ready
	refused
	lost // its connection ended before it was ready
	gone // its connection ended after it was ready: it keeps what it has, and takes the change when it is back
	away // it was not connected when the others were asked
)

// New begins an attempt. hosts are connected, others are concerned and not connected; exceptAway goes on without them.
func New(hosts, others []string, exceptAway bool) *Attempt {
	a := &Attempt{exceptAway: exceptAway, hosts: map[string]standing{}, why: map[string][]string{}}
	for _, name := range hosts {
		a.hosts[name] = asked
	}
	for _, name := range others {
		a.hosts[name] = away
	}
	return a
}

// Answered takes in what a host says: it is ready, or can't make the change for these problems. A later answer counts:
// a change on the host itself may be in the way now, or out of it.
func (a *Attempt) Answered(host string, problems []string) {
	switch is, of := a.hosts[host]; {
	case !of, is == away, is == lost, is == gone: // it was not asked by this connection
	case len(problems) > 0:
		a.hosts[host], a.why[host] = refused, problems
	default:
		a.hosts[host] = ready
		delete(a.why, host)
	}
}

// Lost takes in that the connection of a host has ended, by which it was asked.
func (a *Attempt) Lost(host string) {
	switch is, of := a.hosts[host]; {
	case of && is == ready:
		a.hosts[host] = gone
	case of && is != away && is != gone:
		a.hosts[host] = lost
		delete(a.why, host)
	}
}

// Verdict says whether the change can be decided.
type Verdict int

// The verdicts.
const (
	Open Verdict = iota
	Decide
	Refuse
)

// Verdict is what to do now. final: nothing more is waited for.
func (a *Attempt) Verdict(final bool) Verdict {
	open, here := false, 0
	for _, is := range a.hosts {
		switch {
		case is == refused, !a.exceptAway && (is == lost || is == away):
			return Refuse
		case is == asked:
			open = true
		case is == ready:
			here++
		}
	}
	switch {
	case open && !final:
		return Open
	case open:
		return Refuse
	}
	return Decide
}

// Ready are the hosts that are to change at the instant.
func (a *Attempt) Ready() []string { return a.those(ready) }

// Away are the hosts that take the change when they are back.
func (a *Attempt) Away() []string { return a.those(away, lost, gone) }

func (a *Attempt) those(are ...standing) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(a.hosts)) {
		if slices.Contains(are, a.hosts[name]) {
			names = append(names, name)
		}
	}
	return names
}

// mostLines is how many hosts an error names.
const mostLines = 20

// Lines say why the change is refused, a host in each. Hosts that have not said a word are named where there is no
// other reason: they were asked for as long as patience.
func (a *Attempt) Lines(patience time.Duration) []string {
	var lines, silent []string
	for _, name := range slices.Sorted(maps.Keys(a.hosts)) {
		switch is := a.hosts[name]; {
		case is == refused:
			lines = append(lines, "host "+name+" can't make the change: "+strings.Join(a.why[name], "; "))
		case is == asked:
			silent = append(silent, fmt.Sprintf("host %s has not said within %s that it can make the change", name,
				patience))
		case is == lost && !a.exceptAway:
			lines = append(lines, "host "+name+" lost its connection while it prepared the change")
		case is == away && !a.exceptAway:
			lines = append(lines, "host "+name+" is not connected")
		}
	}
	if len(lines) == 0 {
		lines = silent
	}
	if more := len(lines) - mostLines; more > 0 {
		lines = append(lines[:mostLines:mostLines], fmt.Sprintf("and %d hosts more", more))
	}
	return lines
}
