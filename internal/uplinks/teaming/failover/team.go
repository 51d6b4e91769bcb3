package failover

import (
	"slices"

	"heddle/internal/plan"
	"heddle/internal/spec"
)

// Team describes how one port chooses among the entries of its teaming lists: uplinks and LAGs, by name.
type Team struct {
	Policy          spec.TeamingPolicy
	Active, Standby []string
	Failback        bool
	// Number is the port's number; Assigned is the uplink that load-based teaming has assigned to it.
	Number   uint32
	Assigned string
}

// TeamOf returns the team of a port of the plan.
func TeamOf(p *plan.Port, assigned string) Team {
	t := p.Policy.Teaming
	return Team{Policy: t.Policy.V, Active: t.Active.V, Standby: t.Standby.V, Failback: t.Failback.V, Number: p.Number,
		Assigned: assigned}
}

// Same reports whether two teams choose alike. Failback is not compared: turning it off moves nothing.
func (t Team) Same(o Team) bool {
	return t.Policy == o.Policy && t.Number == o.Number && t.Assigned == o.Assigned &&
		slices.Equal(t.Active, o.Active) && slices.Equal(t.Standby, o.Standby)
}

// Hashes reports whether the team chooses an entry for each frame.
func (t Team) Hashes() bool { return t.Policy == spec.SourceMAC || t.Policy == spec.IPHash }

// Choose returns the entry for a hash value (docs/reference/frame-rules.md §4, "the walk"), "" if none is usable: entry
// h mod n of the active ones, without those that are not usable, then the first usable of the standby list (S42, S45,
// D10).
func (t Team) Choose(h uint32, usable func(entry string) bool) string {
	var room [16]string
	left := append(room[:0], t.Active...)
	for len(left) > 0 {
		i := 0
		if t.Policy != spec.ExplicitOrder {
			i = int(h % uint32(len(left)))
		}
		if usable(left[i]) {
			return left[i]
		}
		left = slices.Delete(left, i, i+1)
	}
	for _, e := range t.Standby {
		if usable(e) {
			return e
		}
	}
	return ""
}

// choices returns the entries that the team uses, in the order of its lists.
func (t Team) choices(usable func(entry string) bool) []string {
	one := t.Choose(t.Number, usable)
	switch {
	case one == "":
		return nil
	case t.Policy == spec.LoadBased && slices.Contains(t.Active, t.Assigned) && usable(t.Assigned):
		return []string{t.Assigned}
	case !t.Hashes() || !slices.Contains(t.Active, one):
		return []string{one}
	}
	var all []string
	for _, e := range t.Active {
		if usable(e) {
			all = append(all, e)
		}
	}
	return all
}

// Use is the entries of its team that a port uses.
type Use struct {
	// Using are the entries in use: one, several with a hashing policy, none if none is usable.
	Using []string `json:"using,omitzero"`
	// Resting are usable entries to which the port does not return while another is usable (S44), in the order in which
	// they became usable.
	Resting []string `json:"resting,omitzero"`
}

// Next returns the use of a port after was, if these entries are usable. With failback the lists decide. Without
// failback a port stays where it is: an entry that would take it away rests, until all the rest of its team has failed;
// then the entry that has rested longest takes over (a rolling order). A newly connected port begins with the zero Use.
func (t Team) Next(was Use, usable func(entry string) bool) Use {
	if t.Failback {
		return Use{Using: t.choices(usable)}
	}
	var resting []string
	for _, e := range was.Resting {
		if usable(e) && (slices.Contains(t.Active, e) || slices.Contains(t.Standby, e)) {
			resting = append(resting, e)
		}
	}
	awake := func(e string) bool { return usable(e) && !slices.Contains(resting, e) }
	stays := slices.ContainsFunc(was.Using, awake)
	for {
		now := t.choices(awake)
		switch {
		case len(now) == 0 && len(resting) > 0:
			if resting, stays = resting[1:], false; len(resting) == 0 {
				resting = nil
			}
			continue
		case !stays:
			return Use{now, resting}
		}
		kept := len(resting)
		for _, e := range now {
			if !slices.Contains(was.Using, e) {
				resting = append(resting, e)
			}
		}
		if len(resting) == kept {
			return Use{now, resting}
		}
	}
}

// PortUse is a port's use of its team, as the agent remembers it across a restart.
type PortUse struct {
	ID plan.PortID `json:"id"`
	Use
}
