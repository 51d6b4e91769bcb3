package plan

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"heddle/internal/spec"
)

// maybe draws a value or, as often, none.
func maybe[T any](t *rapid.T, name string, g *rapid.Generator[T]) *T {
	if !rapid.Bool().Draw(t, name+" set") {
		return nil
	}
	v := g.Draw(t, name)
	return &v
}

var uplinkNames = []string{"u1", "u2", "u3", "u4"}

// drawPolicy draws what one level sets. Active lists come from the first two uplinks and standby lists from the others,
// so that no combination of levels is a fault.
func drawPolicy(t *rapid.T) spec.Policy {
	deref := func(a *spec.Answer) spec.Answer {
		if a == nil {
			return ""
		}
		return *a
	}
	answers := rapid.SampledFrom([]spec.Answer{spec.Accept, spec.Reject})
	p := spec.Policy{
		VLAN: maybe(t, "vlan", rapid.SampledFrom([]spec.VLAN{{None: true}, {Access: 7}, {Trunk: []string{"0", "5-9"}},
			{Trunk: []string{"3"}, Outer: "802.1ad"}})),
		Security: spec.Security{
			Promiscuous:     deref(maybe(t, "promiscuous", answers)),
			MACChanges:      deref(maybe(t, "macChanges", answers)),
			ForgedTransmits: deref(maybe(t, "forgedTransmits", answers)),
			MACLearning: spec.MACLearning{
				Enabled:         maybe(t, "enabled", rapid.Bool()),
				Limit:           maybe(t, "limit", rapid.IntRange(0, 4096)),
				UnicastFlooding: maybe(t, "flooding", rapid.Bool()),
			},
		},
		Teaming: spec.Teaming{
			Active:  maybe(t, "active", rapid.SliceOfDistinct(rapid.SampledFrom(uplinkNames[:2]), rapid.ID[string])),
			Standby: maybe(t, "standby", rapid.SliceOfDistinct(rapid.SampledFrom(uplinkNames[2:]), rapid.ID[string])),
		},
		Blocked:    maybe(t, "blocked", rapid.Bool()),
		Monitoring: spec.Monitoring{IPFIX: maybe(t, "ipfix", rapid.Bool())},
		StormControl: spec.StormControl{
			Broadcast:      maybe(t, "broadcast", rapid.IntRange(0, spec.MaxStormRate)),
			Multicast:      maybe(t, "multicast", rapid.IntRange(0, spec.MaxStormRate)),
			UnknownUnicast: maybe(t, "unknownUnicast", rapid.IntRange(0, spec.MaxStormRate)),
		},
	}
	if b := maybe(t, "burst", rapid.SampledFrom([]string{"10ms", "250ms", "2s"})); b != nil {
		p.StormControl.Burst = *b
	}
	if o := maybe(t, "observe", rapid.SampledFrom([]spec.Observe{spec.ObserveIngress, spec.ObserveEgress,
		spec.ObserveBoth})); o != nil {
		p.Monitoring.Observe = *o
	}
	if l := maybe(t, "limitPolicy", rapid.SampledFrom([]spec.LimitPolicy{spec.LimitDrop, spec.LimitAllow})); l != nil {
		p.Security.MACLearning.LimitPolicy = *l
	}
	if a := maybe(t, "ageing", rapid.SampledFrom([]string{"1s", "90s", "24h"})); a != nil {
		p.Security.MACLearning.Ageing = *a
	}
	if w := maybe(t, "policy", rapid.SampledFrom([]spec.TeamingPolicy{spec.OriginatingPort, spec.SourceMAC,
		spec.ExplicitOrder})); w != nil {
		p.Teaming.Policy = *w
	}
	return p
}

// wish is one field of a policy: whether a level sets it and to what, and its value in the plan.
type wish struct {
	name    string
	set     func(p spec.Policy) (any, bool)
	got     func(e Effective) (any, Level)
	builtIn any
}

func pointer[T any](p *T) (any, bool) {
	if p == nil {
		return nil, false
	}
	return *p, true
}

func word[T ~string](s T) (any, bool) { return s, s != "" }

func accepts(a spec.Answer) (any, bool) { return a == "accept", a != "" }

func of[T any](v Value[T]) (any, Level) { return v.V, v.From }

// wishes returns every field, independently of Resolve.
func wishes() []wish {
	return []wish{
		{"blocked", func(p spec.Policy) (any, bool) { return pointer(p.Blocked) }, func(e Effective) (any, Level) {
			return of(e.Blocked)
		}, false},
		{"ipfix", func(p spec.Policy) (any, bool) { return pointer(p.Monitoring.IPFIX) },
			func(e Effective) (any, Level) { return of(e.Monitoring.IPFIX) }, false},
		{"observe", func(p spec.Policy) (any, bool) { return word(p.Monitoring.Observe) },
			func(e Effective) (any, Level) { return of(e.Monitoring.Observe) }, spec.ObserveBoth},
		{"promiscuous", func(p spec.Policy) (any, bool) { return accepts(p.Security.Promiscuous) },
			func(e Effective) (any, Level) { return of(e.Promiscuous) }, false},
		{"macChanges", func(p spec.Policy) (any, bool) { return accepts(p.Security.MACChanges) },
			func(e Effective) (any, Level) { return of(e.MACChanges) }, false},
		{"forgedTransmits", func(p spec.Policy) (any, bool) { return accepts(p.Security.ForgedTransmits) },
			func(e Effective) (any, Level) { return of(e.ForgedTransmits) }, false},
		{"guestLinkControl", func(p spec.Policy) (any, bool) { return pointer(p.Security.GuestLinkControl) },
			func(e Effective) (any, Level) { return of(e.GuestLinkControl) }, []string{}},
		{"enabled", func(p spec.Policy) (any, bool) { return pointer(p.Security.MACLearning.Enabled) },
			func(e Effective) (any, Level) { return of(e.Learning.Enabled) }, false},
		{"limit", func(p spec.Policy) (any, bool) { return pointer(p.Security.MACLearning.Limit) },
			func(e Effective) (any, Level) { return of(e.Learning.Limit) }, 4096},
		{"limitPolicy", func(p spec.Policy) (any, bool) { return word(p.Security.MACLearning.LimitPolicy) },
			func(e Effective) (any, Level) { return of(e.Learning.LimitPolicy) }, spec.LimitDrop},
		{"flooding", func(p spec.Policy) (any, bool) { return pointer(p.Security.MACLearning.UnicastFlooding) },
			func(e Effective) (any, Level) { return of(e.Learning.UnicastFlooding) }, true},
		{"ageing", func(p spec.Policy) (any, bool) {
			d := map[string]time.Duration{"1s": time.Second, "90s": 90 * time.Second,
				"24h": 24 * time.Hour}[p.Security.MACLearning.Ageing]
			return d, d != 0
		}, func(e Effective) (any, Level) { return of(e.Learning.Ageing) }, 10 * time.Minute},
		{"policy", func(p spec.Policy) (any, bool) { return word(p.Teaming.Policy) }, func(e Effective) (any, Level) {
			return of(e.Teaming.Policy)
		}, spec.OriginatingPort},
		{"standby", func(p spec.Policy) (any, bool) { return pointer(p.Teaming.Standby) },
			func(e Effective) (any, Level) { return of(e.Teaming.Standby) }, []string{}},
		{"broadcast", func(p spec.Policy) (any, bool) { return pointer(p.StormControl.Broadcast) },
			func(e Effective) (any, Level) { return of(e.StormControl.Broadcast) }, 0},
		{"multicast", func(p spec.Policy) (any, bool) { return pointer(p.StormControl.Multicast) },
			func(e Effective) (any, Level) { return of(e.StormControl.Multicast) }, 0},
		{"unknownUnicast", func(p spec.Policy) (any, bool) { return pointer(p.StormControl.UnknownUnicast) },
			func(e Effective) (any, Level) { return of(e.StormControl.UnknownUnicast) }, 0},
		{"burst", func(p spec.Policy) (any, bool) {
			d := map[string]time.Duration{"10ms": 10 * time.Millisecond, "250ms": 250 * time.Millisecond,
				"2s": 2 * time.Second}[p.StormControl.Burst]
			return d, d != 0
		}, func(e Effective) (any, Level) { return of(e.StormControl.Burst) }, time.Second},
		{"vlan", func(p spec.Policy) (any, bool) { return vlanWord(p.VLAN) }, func(e Effective) (any, Level) {
			return e.VLAN.V.String(), e.VLAN.From
		}, "none"},
	}
}

func vlanWord(w *spec.VLAN) (any, bool) {
	switch {
	case w == nil:
		return nil, false
	case w.None:
		return "none", true
	case w.Access == 7:
		return "access 7", true
	case w.Outer != "":
		return "trunk 3 outer 802.1ad", true
	}
	return "trunk 0,5-9", true
}

// checkActive checks the one field whose default depends on another: every uplink that is not standby.
func checkActive(t *rapid.T, levels []spec.Policy, from []Level, e Effective) {
	want := slices.DeleteFunc(slices.Clone(uplinkNames), func(u string) bool {
		return slices.Contains(e.Teaming.Standby.V, u)
	})
	wantFrom := FromBuiltIn
	for i, l := range levels {
		if l.Teaming.Active != nil {
			want, wantFrom = *l.Teaming.Active, from[i]
		}
	}
	if !slices.Equal(e.Teaming.Active.V, want) || e.Teaming.Active.From != wantFrom {
		t.Errorf("active: %v, want %v from %s", e.Teaming.Active, want, wantFrom)
	}
}

func TestS8_S11_EveryEffectiveValueIsThatOfTheNearestLevelThatSetsIt(t *testing.T) {
	from := []Level{FromSwitch, FromPortGroup, FromPort}
	rapid.Check(t, func(t *rapid.T) {
		levels := []spec.Policy{drawPolicy(t), drawPolicy(t), drawPolicy(t)}
		s := spec.Switch{Name: "lab", Defaults: levels[0], PortGroups: []spec.PortGroup{{
			Name: "web", Policy: levels[1], Overrides: spec.Overrides{VLAN: true, Security: true, Teaming: true,
				Monitoring: true, StormControl: true}}}}
		for _, u := range uplinkNames {
			s.Uplinks = append(s.Uplinks, spec.Uplink{Name: u})
		}
		p, err := Resolve(&spec.Config{Switches: []spec.Switch{s},
			Ports: []spec.Port{{Name: "vm", Switch: "lab", PortGroup: "web", Policy: levels[2]}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		e := *p.Switches[0].Ports[0].Policy
		for _, w := range wishes() {
			want, wantFrom := w.builtIn, FromBuiltIn
			for i, l := range levels {
				if v, ok := w.set(l); ok {
					want, wantFrom = v, from[i]
				}
			}
			if got, gotFrom := w.got(e); !reflect.DeepEqual(got, want) || gotFrom != wantFrom {
				t.Errorf("%s: %v from %s, want %v from %s", w.name, got, gotFrom, want, wantFrom)
			}
		}
		checkActive(t, levels, from, e)
	})
}
