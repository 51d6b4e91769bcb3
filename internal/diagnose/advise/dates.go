package advise

import (
	"fmt"
	"hash/fnv"
	"time"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/diagnose/reasons"
	"heddle/internal/observe/sightings"
	"heddle/internal/plan"
)

// The names of counters in a ledger of sightings.
const (
	unlearned   = "macNotLearnedAllowed"
	lossesCount = "deviceLosses"
	// also caused by a link that goes down
	sendErrors   = "deviceSendErrors"
	notSent      = "deviceNotSent"
	flowsMissing = "flowsNotRecorded" // of a switch
)

func dropsOf(r abi.Reason) string   { return "drops/" + r.String() }
func refusedOf(r abi.Reason) string { return "refused/" + r.String() }

// Readings returns the counters that rules use, for a ledger to date. before are the causes at the previous reading,
// nil if they are the same. flows is nil if it is not known.
func Readings(before, causes Causes, stats []api.Stats, flows *api.FlowStatus) map[plan.PortID][]sightings.Count {
	all := make(map[plan.PortID][]sightings.Count, len(stats))
	count := func(id plan.PortID, what string, n uint64, reason string) sightings.Count {
		c := sightings.Count{What: what, N: n, Cause: causes(id, reason)}
		if before != nil {
			c.Was = before(id, reason)
		}
		return c
	}
	for i := range stats {
		s := &stats[i]
		id := plan.PortID{Switch: s.Switch, Name: s.Name}
		list := []sightings.Count{}
		for _, r := range s.Drops {
			list = append(list, count(id, "drops/"+r.Reason, r.Value, r.Reason))
		}
		for _, r := range s.Refused {
			list = append(list, count(id, "refused/"+r.Reason, r.Value, r.Reason))
		}
		for _, c := range s.Extra {
			if c.Name == unlearned {
				list = append(list, count(id, unlearned, c.Value, abi.ReasonMACLimit.String()))
			}
		}
		if d := s.Device; d != nil && s.Uplink {
			list = append(list, sightings.Count{What: lossesCount, N: d.RxErrors + d.RxMissed, Cause: d.Device})
			list = append(list, count(id, sendErrors, d.TxErrors, sendErrors), count(id, notSent, d.TxDropped, notSent))
		}
		all[id] = list
	}
	if flows == nil {
		return all
	}
	for i := range flows.Switches {
		sw := &flows.Switches[i]
		all[plan.PortID{Switch: sw.Switch}] = []sightings.Count{{What: flowsMissing, N: notRecorded(sw),
			Cause: fmt.Sprint(sw.MaxFlows)}}
	}
	return all
}

func notRecorded(sw *api.FlowSwitch) uint64 {
	n := sw.Overflow.Packets
	for _, loss := range sw.Losses {
		n += loss.Packets
	}
	return n
}

// Causes returns a key of the settings that decide whether frames of a port or uplink meet a reason: when the key
// changes, frames that met the reason earlier may belong to a fault that was fixed.
type Causes func(id plan.PortID, reason string) string

// Links say how often each uplink has lost its link.
type Links map[plan.PortID]uint32

// CausesOf makes the Causes of a plan and of the facts of its devices. They cache their results, so that readings
// between two changes cost no hashing.
func CausesOf(p *plan.Plan, facts plan.Facts, links Links) Causes {
	type asked struct {
		id     plan.PortID
		reason string
	}
	known, find := map[asked]string{}, findCauses(p, facts, links)
	return func(id plan.PortID, reason string) string {
		k := asked{id, reason}
		c, ok := known[k]
		if !ok {
			c = find(id, reason)
			known[k] = c
		}
		return c
	}
}

func findCauses(p *plan.Plan, facts plan.Facts, links Links) Causes {
	decides := map[string][]plan.Field{}
	for _, f := range plan.Fields() {
		for _, r := range f.Reasons {
			decides[r.String()] = append(decides[r.String()], f)
		}
	}
	recorded := map[string]func(*plan.Port) string{}
	for _, r := range reasons.Reasons() {
		if r.Case.Decides != nil {
			recorded[r.Name()] = r.Case.Decides
		}
	}
	type member struct {
		sw     *plan.Switch
		port   *plan.Port
		uplink *plan.Uplink
	}
	members := map[plan.PortID]member{}
	for _, sw := range p.Switches {
		for _, u := range sw.Uplinks {
			members[u.ID] = member{sw: sw, uplink: u}
		}
		for _, q := range sw.Ports {
			members[q.ID] = member{sw: sw, port: q}
		}
	}
	return func(id plan.PortID, reason string) string {
		m, ok := members[id]
		if !ok {
			return ""
		}
		if reason == sendErrors || reason == notSent {
			return fmt.Sprint(m.uplink.Device, facts[id].Up, links[id])
		}
		h := fnv.New64a()
		if m.port != nil {
			for _, f := range decides[reason] {
				fmt.Fprintf(h, "%s=%s;", f.Path, f.Value(m.port.Policy))
			}
		}
		if of := recorded[reason]; of != nil && m.port != nil {
			fmt.Fprint(h, of(m.port))
		} else {
			fmt.Fprint(h, besides(m.sw, m.port, m.uplink, facts[id], reason))
		}
		return fmt.Sprintf("%x", h.Sum64())
	}
}

// besides returns a key of what decides about a reason in addition to the policy fields that name it, where its record
// does not say that.
func besides(sw *plan.Switch, p *plan.Port, u *plan.Uplink, f plan.Fact, reason string) string {
	switch reason {
	case abi.ReasonMTUExceeded.String():
		return fmt.Sprint(sw.MTU, f.MTU)
	case abi.ReasonGuestBPDU.String():
		if p != nil {
			return fmt.Sprint(sw.BlockGuestBPDU, p.Policy.GuestLinkControl.V)
		}
		return fmt.Sprint(sw.BlockGuestBPDU)
	case abi.ReasonGuestHealthProbe.String():
		return fmt.Sprint(sw.HealthCheck)
	case abi.ReasonReflected.String():
		if p != nil {
			return fmt.Sprint(p.Policy.Teaming.Policy.V, p.Policy.Teaming.Active.V)
		}
	case abi.ReasonUplinkVLAN.String():
		if u != nil {
			return u.VLANs.String()
		}
	case abi.ReasonMACLimit.String(), abi.ReasonMACTableFull.String():
		if p != nil {
			l := &p.Policy.Learning
			return fmt.Sprint(l.Enabled.V, l.LimitPolicy.V, p.MACRoom())
		}
	}
	return ""
}

// lessBefore subtracts from counters what was counted under settings that have changed since.
func lessBefore(s *api.Stats, seen sightings.Seen) *api.Stats {
	id := plan.PortID{Switch: s.Switch, Name: s.Name}
	if len(seen[id]) == 0 {
		return s
	}
	out := *s
	cut := func(prefix string, list api.ReasonCounts) (left api.ReasonCounts) {
		for _, r := range list {
			one, _ := seen.Of(id, prefix+r.Reason)
			if n := diff(r.Value, one.Before); n > 0 {
				left = append(left, api.ReasonNo{Reason: r.Reason, Value: n})
			}
		}
		return left
	}
	out.Drops, out.Refused = cut("drops/", s.Drops), cut("refused/", s.Refused)
	if s.Device != nil {
		d := *s.Device
		errors, dropped := seen[id][sendErrors], seen[id][notSent]
		d.TxErrors, d.TxDropped = diff(d.TxErrors, errors.Before), diff(d.TxDropped, dropped.Before)
		out.Device = &d
	}
	if one, ok := seen.Of(id, unlearned); ok && one.Before > 0 {
		out.Extra = make(api.Counters, len(s.Extra))
		for i, c := range s.Extra {
			if c.Name == unlearned {
				c.Value = diff(c.Value, one.Before)
			}
			out.Extra[i] = c
		}
	}
	return &out
}

// period returns since when the named counters of a port or uplink have counted.
func (l *look) period(id plan.PortID, whats ...string) string {
	if l.Window > 0 {
		return l.windowText()
	}
	var since time.Time
	for _, what := range whats {
		if one, _ := l.Seen.Of(id, what); one.Since.After(since) {
			since = one.Since
		}
	}
	if since.IsZero() {
		return "since it was connected"
	}
	return fmt.Sprintf("since its settings changed %s ago", l.Now.Sub(since).Round(time.Second))
}

func (l *look) windowText() string {
	return "in the last " + l.Window.Round(100*time.Millisecond).String()
}

// periodOfMany is period for several ports or uplinks.
func (l *look) periodOfMany() string {
	if l.Window > 0 {
		return l.windowText()
	}
	return "since they were connected"
}

// dated adds to a finding when its counters first and last grew. Without a date it was seen now.
func (l *look) dated(f api.Finding, id plan.PortID, whats ...string) api.Finding {
	known, undated := false, false
	for _, what := range whats {
		one, ok := l.Seen.Of(id, what)
		if !ok || one.Counted() == 0 {
			continue
		}
		if one.Last.After(f.LastSeen) {
			f.LastSeen = one.Last
		}
		undated = undated || one.First.IsZero()
		if !known || one.First.Before(f.FirstSeen) {
			f.FirstSeen = one.First
		}
		known = true
	}
	if undated {
		f.FirstSeen = time.Time{}
	}
	if known && f.LastSeen.IsZero() {
		f.Undated = true
	}
	return f
}

// old reports whether a finding was last seen too long ago to be shown by default.
func (s *Snapshot) old(f *api.Finding) bool {
	return s.Window == 0 && (f.Undated || !f.LastSeen.IsZero() && s.Now.Sub(f.LastSeen) > s.Since)
}

// showing returns the findings that are requested: all, or those that were seen lately. In a measurement over a time,
// all findings are of that time.
func (s *Snapshot) showing(list []api.Finding) (shown []api.Finding, older int) {
	for _, f := range list {
		if s.old(&f) && !s.All {
			older++
			continue
		}
		if !f.Undated && f.LastSeen.IsZero() {
			f.LastSeen, f.Now = s.Now, true
		}
		shown = append(shown, f)
	}
	return shown, older
}
