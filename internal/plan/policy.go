package plan

import (
	"slices"
	"time"

	"heddle/internal/spec"
)

// level is one step of the inheritance.
type level struct {
	from   Level
	policy *spec.Policy
}

// effective is what the levels, the nearest last, come to on switch s.
func effective(s *spec.Switch, levels []level) *Effective {
	e := builtIn(s)
	for _, l := range levels {
		p, sec := l.policy, l.policy.Security
		set(&e.Blocked, p.Blocked, l.from)
		setMonitoring(&e.Monitoring, p.Monitoring, l.from)
		if p.VLAN != nil {
			e.VLAN = Value[VLAN]{vlan(p.VLAN), l.from}
		}
		setAnswer(&e.Promiscuous, sec.Promiscuous, l.from)
		setAnswer(&e.MACChanges, sec.MACChanges, l.from)
		setAnswer(&e.ForgedTransmits, sec.ForgedTransmits, l.from)
		set(&e.LoopDetection, sec.LoopDetection, l.from)
		if sec.GuestLinkControl != nil {
			e.GuestLinkControl = Value[[]string]{slices.Clone(*sec.GuestLinkControl), l.from}
		}
		setLearning(&e.Learning, sec.MACLearning, l.from)
		setTeaming(&e.Teaming, p.Teaming, l.from)
		setStormControl(&e.StormControl, p.StormControl, l.from)
	}
	if e.Teaming.Active.From == FromBuiltIn {
		e.Teaming.Active.V = slices.DeleteFunc(e.Teaming.Active.V, func(name string) bool {
			return slices.Contains(e.Teaming.Standby.V, name)
		})
	}
	return e
}

// builtIn is what holds where no level says anything: VLAN none, all security rejected (C3), no learning, a team of all
// uplinks by originating port.
func builtIn(s *spec.Switch) *Effective {
	return &Effective{
		Blocked:          Value[bool]{false, FromBuiltIn},
		VLAN:             Value[VLAN]{VLAN{Mode: VLANNone}, FromBuiltIn},
		Promiscuous:      Value[bool]{false, FromBuiltIn},
		MACChanges:       Value[bool]{false, FromBuiltIn},
		ForgedTransmits:  Value[bool]{false, FromBuiltIn},
		LoopDetection:    Value[bool]{true, FromBuiltIn},
		GuestLinkControl: Value[[]string]{[]string{}, FromBuiltIn},
		Learning: Learning{
			Enabled:         Value[bool]{false, FromBuiltIn},
			Limit:           Value[int]{spec.MaxMACs, FromBuiltIn},
			LimitPolicy:     Value[spec.LimitPolicy]{spec.LimitDrop, FromBuiltIn},
			Ageing:          Value[time.Duration]{spec.DefaultAgeing, FromBuiltIn},
			UnicastFlooding: Value[bool]{true, FromBuiltIn},
		},
		Teaming: Teaming{
			Policy:  Value[spec.TeamingPolicy]{spec.OriginatingPort, FromBuiltIn},
			Active:  Value[[]string]{s.DefaultActive(), FromBuiltIn},
			Standby: Value[[]string]{[]string{}, FromBuiltIn},

			Failback:         Value[bool]{true, FromBuiltIn},
			NotifySwitches:   Value[bool]{true, FromBuiltIn},
			FailureDetection: Value[spec.FailureDetection]{spec.DetectLink, FromBuiltIn},
		},
		Monitoring: noMonitoring(),
		StormControl: StormControl{
			Broadcast:      Value[int]{0, FromBuiltIn},
			Multicast:      Value[int]{0, FromBuiltIn},
			UnknownUnicast: Value[int]{0, FromBuiltIn},
			Burst:          Value[time.Duration]{spec.DefaultStormBurst, FromBuiltIn},
		},
	}
}

func set[T any](v *Value[T], own *T, from Level) {
	if own != nil {
		*v = Value[T]{*own, from}
	}
}

func setAnswer(v *Value[bool], own spec.Answer, from Level) {
	if own != "" {
		*v = Value[bool]{own == spec.Accept, from}
	}
}

func setLearning(l *Learning, own spec.MACLearning, from Level) {
	set(&l.Enabled, own.Enabled, from)
	set(&l.Limit, own.Limit, from)
	set(&l.UnicastFlooding, own.UnicastFlooding, from)
	if own.LimitPolicy != "" {
		l.LimitPolicy = Value[spec.LimitPolicy]{own.LimitPolicy, from}
	}
	if d, ok := own.AgeingTime(); ok {
		l.Ageing = Value[time.Duration]{d, from}
	}
}

func setTeaming(t *Teaming, own spec.Teaming, from Level) {
	if own.Policy != "" {
		t.Policy = Value[spec.TeamingPolicy]{own.Policy, from}
	}
	if own.Active != nil {
		t.Active = Value[[]string]{slices.Clone(*own.Active), from}
	}
	if own.Standby != nil {
		t.Standby = Value[[]string]{slices.Clone(*own.Standby), from}
	}
	set(&t.Failback, own.Failback, from)
	set(&t.NotifySwitches, own.NotifySwitches, from)
	if own.FailureDetection != "" {
		t.FailureDetection = Value[spec.FailureDetection]{own.FailureDetection, from}
	}
}

func setStormControl(s *StormControl, own spec.StormControl, from Level) {
	set(&s.Broadcast, own.Broadcast, from)
	set(&s.Multicast, own.Multicast, from)
	set(&s.UnknownUnicast, own.UnknownUnicast, from)
	if d, ok := own.BurstTime(); ok {
		s.Burst = Value[time.Duration]{d, from}
	}
}

func vlan(w *spec.VLAN) VLAN {
	switch {
	case w.Trunk != nil:
		return VLAN{Mode: VLANTrunk, Set: vlanSet(w.Trunk), AD: w.Outer == outerAD}
	case w.Access != 0:
		return VLAN{Mode: VLANAccess, ID: uint16(w.Access)}
	}
	return VLAN{Mode: VLANNone}
}
