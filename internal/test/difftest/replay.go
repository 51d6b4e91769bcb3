package difftest

import (
	"fmt"
	"strings"
	"time"

	"heddle/internal/plan"
)

// gap is the time between two cases: longer than anything is remembered.
const gap = 48 * time.Hour

// checkEvery is the number of frames after which tables and counters are compared.
const checkEvery = 64

// Bench plays cases to two subjects. Both go from case to case, so that what a case leaves behind is part of the test.
type Bench struct {
	Want, Got Subject
	now       time.Duration
}

// Mismatch is what two subjects disagreed in, or an isolation breach.
type Mismatch struct {
	Step int // index of the case's step after which it showed; −1: the first plan
	What string
}

// Play takes both subjects from an empty host through a case. It returns the number of frames compared, and the first
// mismatch. The error is a subject's that failed, or the case's that is not valid.
func (b *Bench) Play(c *Case) (frames int, _ *Mismatch, _ error) {
	if err := b.clear(); err != nil {
		return 0, nil, err
	}
	guard, err := b.setState(&c.State)
	if err != nil {
		return 0, nil, err
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		b.now += s.After
		what, check := "", i == len(c.Steps)-1
		switch {
		case s.Change != nil:
			guard, err = b.setState(s.Change)
			check = true
		case s.Sweep:
			err = b.each(func(x Subject) error { return x.Sweep(b.now) })
			check = true
		case guard.connected(s.At) && (!s.FromHost || guard.uplinks[s.At] != nil):
			frames++
			what, err = b.frame(guard, s)
			check = check || frames%checkEvery == 0
		}
		if err == nil && what == "" && check {
			what, err = b.tables()
		}
		if err != nil {
			return frames, nil, fmt.Errorf("step %d: %w", i, err)
		}
		if what != "" {
			return frames, &Mismatch{Step: i, What: what}, nil
		}
	}
	return frames, nil, nil
}

func (b *Bench) each(f func(Subject) error) error {
	if err := f(b.Want); err != nil {
		return err
	}
	return f(b.Got)
}

// clear leaves both subjects without switches, a long time after anything happened.
func (b *Bench) clear() error {
	if err := b.each(func(s Subject) error { return s.SetPlan(&plan.Plan{}, plan.Facts{}, b.now) }); err != nil {
		return err
	}
	b.now += gap
	return b.each(func(s Subject) error { // what the case before left
		_, err := s.Flows()
		return err
	})
}

func (b *Bench) setState(s *State) (*Isolation, error) {
	p, f, err := s.Resolve()
	if err != nil {
		return nil, err
	}
	return NewIsolation(p, f), b.each(func(x Subject) error { return x.SetPlan(p, f, b.now) })
}

func (b *Bench) frame(guard *Isolation, s *Step) (string, error) {
	give, check := Subject.Frame, guard.Check
	if s.FromHost {
		give, check = Subject.FromHost, guard.CheckFromHost
	}
	want, err := give(b.Want, s.At, s.Frame, b.now)
	if err != nil {
		return "", err
	}
	var lines []string
	note := func(prefix, what string) {
		if what != "" {
			lines = append(lines, prefix+what)
		}
	}
	note("isolation (first): ", check(s.At, s.Frame, want))
	got, err := give(b.Got, s.At, s.Frame, b.now)
	if err != nil {
		return "", err
	}
	note("isolation (second): ", check(s.At, s.Frame, got))
	note(fmt.Sprintf("frame %x at %s\n", []byte(s.Frame), s.At), differ(want, got))
	return strings.Join(lines, "\n"), nil
}

// tables compares what the subjects have learned and counted.
func (b *Bench) tables() (string, error) {
	wantMACs, err := b.Want.MACs(b.now)
	if err != nil {
		return "", err
	}
	gotMACs, err := b.Got.MACs(b.now)
	if err != nil {
		return "", err
	}
	want, err := b.Want.Counters()
	if err != nil {
		return "", err
	}
	got, err := b.Got.Counters()
	if err != nil {
		return "", err
	}
	wantFlows, err := b.Want.Flows()
	if err != nil {
		return "", err
	}
	gotFlows, err := b.Got.Flows()
	if err != nil {
		return "", err
	}
	return strings.Trim(differMACs(wantMACs, gotMACs)+"\n"+differCounters(want, got)+"\n"+
		differFlows(wantFlows, gotFlows), "\n"), nil
}
