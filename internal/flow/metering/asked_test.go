package metering

import (
	"errors"
	"strings"
	"testing"

	"heddle/internal/api"
)

func TestWhoAsksForWhatIsNotThereIsTold(t *testing.T) {
	g := newRig(t)
	g.settle(idle, "vm1")
	g.await("the meter", func() bool { m, _ := g.opened(); return m != nil })
	for f, want := range map[api.FlowFilter]string{{Port: "vm7"}: "there is no port or uplink vm7; there are ",
		{Uplink: "vm1"}:                    "there is no uplink vm1; there ",
		{Switch: "other"}:                  "there is no switch other; there is lab",
		{PortGroup: "nope"}:                "there is no port group nope; there are db, empty, web",
		{PortGroup: "wbe"}:                 "there is no port group wbe; did you mean web?",
		{Switch: "lab", PortGroup: "nope"}: "switch lab has no port group nope; it has db, empty, web"} {
		q, top := query(), api.FlowTopQuery{FlowFilter: f, Sort: "bits", Limit: 1, Interval: every}
		q.FlowFilter = f
		_, list := g.Flows(q)
		rates := g.Top(t.Context(), top, func(api.FlowTop) error { return errors.New("answered") })
		records := g.Records(t.Context(), f, func(api.FlowRecords) error { return errors.New("answered") })
		for _, err := range []error{list, rates, records} {
			var e *api.Error
			if !errors.As(err, &e) || e.Kind != api.NotFound || !strings.Contains(e.Error(), want) {
				t.Errorf("%+v: %v, want %q", f, err, want)
			}
		}
	}
	uplink := api.FlowNote{Code: api.UplinkNotMetered, Name: "u1", Text: "uplink u1 is not metered"}
	for f, want := range map[api.FlowFilter]api.FlowNote{
		{}: {}, {Port: "vm1"}: {}, {PortGroup: "web"}: {}, {Port: "vm1", PortGroup: "db"}: {},
		{Port: "vm2"}: {Code: api.PortNotMetered, Name: "vm2", PortGroup: "db", Text: "port vm2 is not metered"},
		{Port: "u1"}:  uplink, {Uplink: "u1"}: uplink,
		{PortGroup: "db"}: {Code: api.PortGroupNotMetered, Name: "db", Text: "no port of port group db is metered"},
		{PortGroup: "empty"}: {Code: api.PortGroupNotMetered, Name: "empty",
			Text: "no port of port group empty is metered"},
	} {
		q := query()
		q.FlowFilter = f
		l, err := g.Flows(q)
		if err != nil || !l.Note.Same(want) || !strings.HasPrefix(l.Note.Text, want.Text) ||
			l.Note.None() != (l.Note.Text == "") {
			t.Errorf("%+v: %+v %v, want %+v", f, l.Note, err, want)
		}
	}
}

func TestWhoWatchesIsToldThatNothingIsMeteredAndWhenSomethingIs(t *testing.T) {
	g := newRig(t)
	g.settle(idle)
	g.await("the meter", func() bool { m, _ := g.opened(); return m != nil })
	if s, err := g.Status(); err != nil || s.Note != nothingMetered() {
		t.Errorf("%+v %v", s, err)
	}
	enough := errors.New("enough")
	var notes []api.FlowNote
	err := g.Records(t.Context(), api.FlowFilter{Port: "vm1"}, func(r api.FlowRecords) error {
		if notes = append(notes, r.Note); len(notes) == 2 {
			return enough
		}
		g.settle(idle, "vm1")
		return nil
	})
	if !errors.Is(err, enough) || notes[0] != nothingMetered() || !notes[1].None() {
		t.Errorf("%+v %v", notes, err)
	}
	err = g.Top(t.Context(), api.FlowTopQuery{FlowFilter: api.FlowFilter{Port: "vm2"}, Sort: "bits", Limit: 1,
		Interval: every}, func(f api.FlowTop) error {
		if !strings.Contains(f.Note.Text, "vm2 is not metered") {
			t.Errorf("%+v", f)
		}
		return enough
	})
	if !errors.Is(err, enough) {
		t.Error(err)
	}
}

func TestS66_WhoLooksIsToldThatPacketsAreSampled(t *testing.T) {
	g := newRig(t)
	g.settle(idle, "vm1")
	g.plan.Switches[0].IPFIX.SamplingRate = 9
	g.Settled(g.plan, nil, nil)
	g.await("the flows' table", func() bool {
		s, _ := g.Status()
		return len(s.Switches) == 1 &&
			s.Switches[0].SamplingRate == 9
	})
	for f, want := range map[api.FlowFilter]int{{}: 9, {Port: "vm1"}: 9, {Port: "vm2"}: 0} {
		q := query()
		q.FlowFilter = f
		if l, err := g.Flows(q); err != nil || l.SamplingRate != want {
			t.Errorf("%+v: %+v %v", f, l, err)
		}
	}
	enough := errors.New("enough")
	err := g.Top(t.Context(), api.FlowTopQuery{Sort: "bits", Limit: 1, Interval: every}, func(f api.FlowTop) error {
		if f.SamplingRate != 9 {
			t.Errorf("%+v", f)
		}
		return enough
	})
	if !errors.Is(err, enough) {
		t.Error(err)
	}
}

// Drains and views have the same period but different phases: no view may fall between two drains.
func TestEveryViewOfRatesHasADrainInIt(t *testing.T) {
	g := newRig(t)
	g.src.drain = func() { g.src.count(key(1, 1), 1) }
	g.settle(idle, "vm1")
	g.await("the flow", func() bool { l, _ := g.Flows(query()); return l.Total == 1 })
	enough, n := errors.New("enough"), 0
	err := g.Top(t.Context(), api.FlowTopQuery{Sort: "packets", Limit: 5, Interval: every}, func(f api.FlowTop) error {
		if n++; n > 50 {
			return enough
		}
		if f.Active != 1 {
			t.Errorf("view %d: %+v", n, f)
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Error(err)
	}
}

// While nothing is metered the export does not learn of changes: the status shows the plan's collectors.
func TestStatusShowsTheCollectorsOfThePlanAlone(t *testing.T) {
	g := newRig(t)
	g.settle(idle, "vm1")
	shown := func() int {
		s, err := g.Status()
		if err != nil || len(s.Switches) == 0 {
			return -1
		}
		return len(s.Switches[0].Collectors)
	}
	g.await("the collector", func() bool { return shown() == 1 })
	g.settle(idle)
	g.plan.Switches[0].IPFIX.Collectors = nil
	g.Settled(g.plan, nil, nil)
	if n := shown(); n != 0 {
		t.Errorf("%d collectors", n)
	}
}
