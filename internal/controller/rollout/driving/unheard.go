package driving

import (
	"fmt"

	"heddle/internal/controller/rollout"
)

// A host that a change has cut off is silent, and its controller notices that after half a minute only. So no stage
// ends before each of its hosts has answered the last question of the stage; one that does not is a finding in the end.

// unheard reports whether a host that has the change has not answered the last question yet.
func (v *drive) unheard() bool {
	return !v.finally || v.asking || len(v.watch.Unheard(v.having())) > 0
}

// having are the hosts that have the change and are connected.
func (v *drive) having() (names []string) {
	for _, name := range v.changed {
		if v.hosts[name].State == Changed {
			names = append(names, name)
		}
	}
	return names
}

// quieted marks those of the hosts as troubled that have the change and have not said for Answer what they counted.
func (v *drive) quieted(s sample) map[string]rollout.Vitals {
	for _, name := range v.having() {
		one, ok := s.hosts[name]
		if ok && (one.Silent == "" || one.Mute) {
			delete(v.quiet, name)
			continue
		}
		if v.quiet[name].IsZero() {
			v.quiet[name] = s.at
		}
		if v.Now().Sub(v.quiet[name]) < v.Answer {
			continue
		}
		if h := v.hosts[name]; h.Trouble == "" {
			why := one.Silent
			if why == "" {
				why = "no controller reaches it"
			}
			h.Trouble = fmt.Sprintf("it has not answered for %s: %s", v.Answer, why)
			v.hosts[name] = h
		}
	}
	return s.hosts
}
