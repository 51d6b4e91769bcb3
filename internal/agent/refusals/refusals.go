package refusals

import (
	"net/netip"
	"slices"
	"time"

	"heddle/internal/abi"
	"heddle/internal/agent/active"
	"heddle/internal/api"
	"heddle/internal/binding"
	"heddle/internal/dataplane"
	"heddle/internal/diagnose/advise"
	"heddle/internal/diagnose/trace"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// pastAfter is how long a guest must have had frames accepted, and none refused, before a refusal counts as past.
// Counters are read every minute, and stations that repeat themselves do so every 30 seconds (LLDP).
const pastAfter = 45 * time.Second

// refusal is the latest frame of one reason that a port's policy refused, and the counters that show whether refusals
// continue.
type refusal struct {
	api.Refusal
	cause string // key of the settings that refused it
	// counted, delivered and at belong to the reading of the counters after which no frame was refused; at is zero
	// before there is one.
	counted, delivered uint64
	at                 time.Time
	past               bool
}

// Refusals keeps which frames of their guests the policies of ports refused. The switch program reports at most one a
// second for each port, and the reasons are few, so that a hostile guest cannot make the list grow.
type Refusals struct {
	now    active.Reader
	of     *binding.Desired // the plan for which causes were computed
	causes advise.Causes
	list   map[plan.PortID][]refusal // the newest first
}

// New returns refusals of which none is known.
func New(now active.Reader) *Refusals { return &Refusals{now: now, list: map[plan.PortID][]refusal{}} }

// causeOf returns a key for the settings that now decide about a port's frames of a reason.
func (rs *Refusals) causeOf(id plan.PortID, reason string) string {
	d := rs.now.Active().Applied
	if d == nil {
		return ""
	}
	if rs.of != d {
		rs.of, rs.causes = d, advise.CausesOf(d.Plan, d.Facts, nil)
	}
	return rs.causes(id, reason)
}

// Note keeps the latest frame of each reason. A frame that was reported at a MAC limit may have passed.
func (rs *Refusals) Note(e dataplane.Told) {
	r := refusal{Refusal: api.Refusal{Reason: e.Reason.String(), MAC: e.MAC.String(), Time: e.At},
		cause: rs.causeOf(e.Port, e.Reason.String())}
	if e.Claim.IsValid() {
		r.Address = e.Claim.String()
	}
	r.Passed = e.Kind == abi.TellLimit && !rs.drops(e.Port)
	others := slices.DeleteFunc(slices.Clone(rs.list[e.Port]), func(o refusal) bool { return o.Reason == r.Reason })
	rs.list[e.Port] = append([]refusal{r}, others...)
}

// drops reports whether a port at its MAC limit drops frames whose source it cannot learn.
func (rs *Refusals) drops(id plan.PortID) bool {
	if rs.now.Active().Applied == nil {
		return true
	}
	p := rs.now.Active().Applied.Plan.Port(id)
	return p == nil || p.Policy.Learning.LimitPolicy.V == spec.LimitDrop
}

// Settle finds, by counters that were read just now, which refusals are past: the guest's frames were accepted for a
// while, and none was refused.
func (rs *Refusals) Settle(now time.Time, stats []api.Stats) {
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

// isPast reports whether the refusal is past, where this is the key of the settings that refuse now.
func (r *refusal) isPast(cause string) bool { return r.past || r.cause != cause }

// Forget removes the refusals of a port.
func (rs *Refusals) Forget(id plan.PortID) { delete(rs.list, id) }

// Shown returns the refusals of all ports. A refusal is past at once when the settings that refused the frame have
// changed: a frame that they still refuse is reported within a second.
func (rs *Refusals) Shown() map[plan.PortID][]api.Refusal {
	all := make(map[plan.PortID][]api.Refusal, len(rs.list))
	for id, list := range rs.list {
		for _, r := range list {
			r.Past = r.isPast(rs.causeOf(id, r.Reason))
			all[id] = append(all[id], r.Refusal)
		}
	}
	return all
}

// Claimed returns the addresses that were the source of frames refused at ports.
func (rs *Refusals) Claimed() (seen []trace.Seen) {
	for at, list := range rs.list {
		for _, r := range list {
			a, err := netip.ParseAddr(r.Address)
			m, bad := plan.ParseMAC(r.MAC)
			if err == nil && bad == nil {
				seen = append(seen, trace.Seen{At: at, MAC: m, Addr: a})
			}
		}
	}
	return seen
}
