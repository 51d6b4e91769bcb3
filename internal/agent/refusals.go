package agent

import (
	"slices"
	"time"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/binding"
	"heddle/internal/dataplane"
	"heddle/internal/diagnose/advise"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// pastAfter is how long a guest must have had frames accepted, and none refused, before a refusal is past. Readings of
// the counters are a minute apart, and stations that repeat themselves do so every 30 seconds (LLDP).
const pastAfter = 45 * time.Second

// refusal is the latest frame of one reason that a port's policy refused, and what tells whether that goes on.
type refusal struct {
	api.Refusal
	cause string // stands for the settings that refused it
	// counted, delivered and at are of the reading of the counters after which no frame was refused; at is zero before
	// there is one.
	counted, delivered uint64
	at                 time.Time
	past               bool
}

// refusals keeps what the policies of ports refused their guests. The switch program tells one a second of each port at
// most, and the reasons are few, so that a hostile guest makes no more of it.
type refusals struct {
	effect *effect

	of     *binding.Desired // causes are of
	causes advise.Causes
	list   map[plan.PortID][]refusal // the newest first
}

// causeOf stands for the settings that decide now about a port's frames of a reason.
func (rs *refusals) causeOf(id plan.PortID, reason string) string {
	d := rs.effect.applied
	if d == nil {
		return ""
	}
	if rs.of != d {
		rs.of, rs.causes = d, advise.CausesOf(d.Plan, d.Facts, nil)
	}
	return rs.causes(id, reason)
}

// note keeps the latest frame of each reason. A frame that came at a MAC limit may have passed.
func (rs *refusals) note(e dataplane.Told) {
	r := refusal{Refusal: api.Refusal{Reason: e.Reason.String(), MAC: e.MAC.String(), Time: e.At}}
	if e.Claim.IsValid() {
		r.Address = e.Claim.String()
	}
	r.Passed = e.Kind == abi.TellLimit && !rs.drops(e.Port)
	r.cause = rs.causeOf(e.Port, r.Reason)
	others := slices.DeleteFunc(slices.Clone(rs.list[e.Port]), func(o refusal) bool { return o.Reason == r.Reason })
	rs.list[e.Port] = append([]refusal{r}, others...)
}

// drops says whether a port at its MAC limit drops what it cannot learn.
func (rs *refusals) drops(id plan.PortID) bool {
	if rs.effect.applied == nil {
		return true
	}
	p := rs.effect.applied.Plan.Port(id)
	return p == nil || p.Policy.Learning.LimitPolicy.V == spec.LimitDrop
}

// settle finds, by counters that were read just now, which refusals are past: the guest's frames were accepted for a
// while, and none was refused.
func (rs *refusals) settle(now time.Time, stats []api.Stats) {
	if len(rs.list) == 0 {
		return
	}
	for i := range stats {
		s := &stats[i]
		for j := range rs.list[plan.PortID{Switch: s.Switch, Name: s.Name}] {
			rs.list[plan.PortID{Switch: s.Switch, Name: s.Name}][j].settle(now, s)
		}
	}
}

func (r *refusal) settle(now time.Time, s *api.Stats) {
	counted, delivered := s.Extra.Value("macNotLearnedAllowed"), s.Extra.Value("delivered")
	if !r.Passed {
		counted = s.Drops.Value(r.Reason) + s.Refused.Value(r.Reason)
	}
	if r.at.IsZero() || counted != r.counted || r.Time.After(r.at) {
		r.counted, r.delivered, r.at, r.past = counted, delivered, now, false
		return
	}
	r.past = now.Sub(r.at) >= pastAfter && delivered > r.delivered
}

// forget drops what is known of a port.
func (rs *refusals) forget(id plan.PortID) { delete(rs.list, id) }

// shown are the refusals of all ports. One is past at once when the settings that refused it have changed: a frame that
// they still refuse is told within a second.
func (rs *refusals) shown() map[plan.PortID][]api.Refusal {
	all := make(map[plan.PortID][]api.Refusal, len(rs.list))
	for id, list := range rs.list {
		for _, r := range list {
			r.Past = r.past || r.cause != rs.causeOf(id, r.Reason)
			all[id] = append(all[id], r.Refusal)
		}
	}
	return all
}
