package failover

import (
	"slices"

	"heddle/internal/plan"
	"heddle/internal/spec"
)

// Team is how one port chooses among the entries of its teaming lists: uplinks and LAGs, by name.
type Team struct {
	Policy          spec.TeamingPolicy
	Active, Standby []string
	Failback        bool
	// Number is the port's, Assigned what load-based teaming has given it.
	Number   uint32
	Assigned string
}

// TeamOf is the team of a port of the plan.
func TeamOf(p *plan.Port, assigned string) Team {
	t := p.Policy.Teaming
	return Team{Policy: t.Policy.V, Active: t.Active.V, Standby: t.Standby.V, Failback: t.Failback.V, Number: p.Number,
		Assigned: assigned}
}

// Same reports whether two teams choose alike. Failback is no part of it: to switch it off moves nothing.
func (t Team) Same(o Team) bool {
	return t.Policy == o.Policy && t.Number == o.Number && t.Assigned == o.Assigned &&
		slices.Equal(t.Active, o.Active) && slices.Equal(t.Standby, o.Standby)
}

// Hashes reports whether the team chooses frame by frame.
func (t Team) Hashes() bool { return t.Policy == spec.SourceMAC || t.Policy == spec.IPHash }

// Choose is the entry for a hash value (docs/reference/frame-rules.md §4, "the walk"), "" when none is usable: entry h
// mod n of the active ones, striking those that are not usable, then the first usable of the standby list (S42, S45,
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

// choices are the entries that the team uses, in the order of its lists.
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

// Use is what a port uses of its team.
type Use struct {
	// Using are the entries in use: one, several with a hashing policy, none when none is usable.
	Using []string `json:"using,omitzero"`
	// Resting are usable entries that the port does not return to while another is usable (S44), the longest back
	// first.
	Resting []string `json:"resting,omitzero"`
}

// Next is what a port uses that used was, now that these entries are usable. With failback it is what the lists say.
// Without, a port stays where it is: what would take it away rests, until all the rest of its team has failed; then the
// entry that has been back longest takes over (a rolling order). A port that is connected begins with the zero Use.
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

// PortUse is what a port uses of its team, as the agent remembers it over a restart.
type PortUse struct {
	ID plan.PortID `json:"id"`
	Use
}
