package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/agent/part"
	"heddle/internal/observe"
	"heddle/internal/plan"
)

// sessions is the part of a feature that knows connections of ports.
type sessions struct {
	has    [][]byte
	room   int
	landed [][]byte
	youth  time.Duration // the least age of what landed
	fails  bool
	ill    bool // it cannot read what it has
}

func (s *sessions) Close() error { return nil }
func (s *sessions) Dumps(plan.PortID) (func() ([][]byte, error), error) {
	if s.has == nil {
		return nil, nil
	}
	return func() ([][]byte, error) {
		if s.ill {
			return nil, errors.New("the table is torn")
		}
		return s.has, nil
	}, nil
}
func (s *sessions) Room(plan.PortID) int { return s.room }
func (s *sessions) Land(_ plan.PortID, chunk []byte, age time.Duration) error {
	if s.fails {
		return errors.New("the table is full")
	}
	s.landed, s.youth = append(s.landed, chunk), age
	return nil
}

// with gives a host the part of a feature.
func (r *rig) with(name string, p part.Part) {
	r.t.Helper()
	if err := r.parts.Extend([]part.Feature{{Name: name, After: "flows",
		New: func(part.Deps) (part.Part, error) { return p, nil }}}, part.Deps{}); err != nil {
		r.t.Fatal(err)
	}
}

// turns runs the loop until a condition holds in it.
func (r *rig) turns(what string, until func() bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	for !until() {
		select {
		case f := <-r.Calls():
			f()
		case <-ctx.Done():
			r.t.Fatalf("in vain: %s", what)
		}
	}
}

// What a feature's part has of a port goes with it, in chunks, and lands in the part of that name when the guest runs.
func TestWhatAFeatureHasOfAPortTravels(t *testing.T) {
	a, b := travelHost(t, lenient, 1000), travelHost(t, lenient, 50)
	from, to := &sessions{}, &sessions{room: 2 << 20}
	for i := range 20 {
		from.has = append(from.has, bytes.Repeat([]byte{byte(i)}, part.MaxChunk))
	}
	a.with("firewall", from)
	b.with("firewall", to)
	a.arrives()
	b.keeps(1, a.packs())
	if g := b.state.Goods[0]; !slices.Equal(g.Parts, []string{"firewall"}) || len(to.landed) != 0 {
		t.Fatalf("before the guest runs: %+v, %d chunks have landed", g, len(to.landed))
	}
	b.arrives()
	b.turns("all chunks land", func() bool { return len(to.landed) == len(from.has) })
	if !slices.EqualFunc(to.landed, from.has, bytes.Equal) || to.youth < 0 {
		t.Errorf("what landed is not what was there; age %v", to.youth)
	}
	if left := b.portShown().LeftOut; len(left) != 0 {
		t.Errorf("left out: %q", left)
	}
}

// What the other host has no part or no room for is named there, as is what found no room on the way.
func TestWhatAFeatureCannotTakeIsNamed(t *testing.T) {
	for _, c := range []struct {
		want string
		has  int // chunks
		to   *sessions
	}{
		{"firewall, which this host's version of Heddle does not have", 1, nil},
		{fmt.Sprintf("firewall: %d bytes, and this host has room for 10", part.MaxChunk), 1, &sessions{room: 10}},
		{"firewall: 3 of 35 portions, which have no room in a move", 35, &sessions{room: 4 << 20}},
	} {
		t.Run(c.want, func(t *testing.T) {
			a, b := travelHost(t, lenient, 1000), travelHost(t, lenient, 50)
			from := &sessions{has: slices.Repeat([][]byte{make([]byte, part.MaxChunk)}, c.has)}
			a.with("firewall", from)
			if c.to != nil {
				b.with("firewall", c.to)
			}
			a.arrives()
			b.keeps(1, a.packs())
			if left := b.portShown().LeftOut; len(left) != 1 || left[0] != c.want {
				t.Errorf("left out: %q", left)
			}
		})
	}
}

// A part that does not take what came says so, and the port serves its guest.
func TestWhatDoesNotLandIsComplainedOf(t *testing.T) {
	a, b := travelHost(t, lenient, 1000), travelHost(t, lenient, 50)
	a.with("firewall", &sessions{has: [][]byte{{1}, {2}}})
	b.with("firewall", &sessions{room: 100, fails: true})
	a.arrives()
	b.keeps(1, a.packs())
	b.arrives()
	b.turns("it is complained of", func() bool { return strings.Contains(b.Complaint(), "the table is full") })
}

// A part that cannot read what it has is complained of, and keeps nothing else of the port from travelling.
func TestAPartThatCannotReadKeepsNothingElseBack(t *testing.T) {
	a := travelHost(t, lenient, 1000)
	a.with("firewall", &sessions{has: [][]byte{{1}}, ill: true})
	a.arrives()
	a.kernel.learned = map[plan.PortID][]observe.MACEntry{id("vm"): {{VLAN: 100, MAC: plan.MAC{2, 1, 1, 1, 1, 1}}}}
	if b := a.packs(); len(b.GetMacs()) != 1 || len(b.GetParts()) != 0 ||
		!strings.Contains(a.Complaint(), "firewall: the table is torn") {
		t.Errorf("%d MACs and %d parts travel: %q", len(b.GetMacs()), len(b.GetParts()), a.Complaint())
	}
}
