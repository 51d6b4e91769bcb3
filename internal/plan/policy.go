package plan

import (
	"slices"

	"heddle/internal/spec"
)

// level is one step of the inheritance.
type level struct {
	from   Level
	policy *spec.Policy
}

// effective combines the levels on switch s, the nearest of which is last: each field separately (D3).
func effective(s *spec.Switch, levels []level) *Effective {
	e := &Effective{}
	for i := range policyFields {
		f := &policyFields[i]
		f.builtIn(e, s)
		for _, l := range levels {
			f.inherit(e, l.policy, l.from)
		}
	}
	if e.Teaming.Active.From == FromBuiltIn {
		e.Teaming.Active.V = slices.DeleteFunc(e.Teaming.Active.V, func(name string) bool {
			return slices.Contains(e.Teaming.Standby.V, name)
		})
	}
	return e
}

// uplinkMonitoring returns an uplink's monitoring, which inherits nothing.
func uplinkMonitoring(s *spec.Switch, own spec.Monitoring) Monitoring {
	var e Effective
	for i := range policyFields {
		if f := &policyFields[i]; f.OfUplinks {
			f.builtIn(&e, s)
			f.inherit(&e, &spec.Policy{Monitoring: own}, FromUplink)
		}
	}
	return e.Monitoring
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
