package agent

import (
	"maps"
	"reflect"

	"heddle/internal/agent/state"
	"heddle/internal/spec"
)

// settings are what the controllers' definition sets for static ports that are bound on this host, by their numbers.
// They are read once for each slice.
type settings struct {
	of   *state.Slice
	list map[string]spec.PortSettings
}

// defined is the part of the desired state that the controllers' definition sets for static ports.
type defined struct{ *ports }

// settings are those of the active slice. One that cannot be read has been refused when it came.
func (ps defined) settings() map[string]spec.PortSettings {
	if s := ps.state.Slice; ps.sets.of != s {
		ps.sets = settings{of: s}
		if s != nil {
			var err error
			if ps.sets.list, err = s.Set().Settings(); err != nil {
				ps.Complain("read the settings of static ports", err)
			}
		}
	}
	return ps.sets.list
}

// settingsOf are those of the static port that a run-time port is; none for another port.
func (ps defined) settingsOf(port string) (spec.PortSettings, bool) {
	list := ps.settings()
	if len(list) == 0 {
		return spec.PortSettings{}, false
	}
	n := ps.state.NICOf(port)
	if n == nil || n.ID == "" || n.Conflict != "" {
		return spec.PortSettings{}, false
	}
	s, ok := list[n.ID]
	return s, ok && s.Switch == n.Switch && s.PortGroup == n.PortGroup
}

// definedPolicies are the policies that the definition sets for run-time ports, by the ports' names.
func (ps defined) definedPolicies() map[string]spec.Policy {
	if len(ps.settings()) == 0 {
		return nil
	}
	all := map[string]spec.Policy{}
	for _, n := range ps.state.NICs {
		if s, ok := ps.settingsOf(n.Port); ok {
			all[n.Port] = s.Policy
		}
	}
	return all
}

// sameSettings reports whether two slices set the same for static ports.
func sameSettings(a, b *state.Slice) (bool, error) {
	before, err := a.Set().Settings()
	if err != nil {
		before = nil // it will be replaced
	}
	after, err := b.Set().Settings()
	return maps.EqualFunc(before, after, func(a, b spec.PortSettings) bool { return reflect.DeepEqual(a, b) }), err
}

// anotherSlice wakes who waits for another slice. It is called in the loop.
func (ps defined) anotherSlice() {
	if ps.sliced != nil {
		close(ps.sliced)
		ps.sliced = nil
	}
}

// setting reports whether the definition sets something for a static port, and returns a channel that is closed when
// another one is active.
func (ps defined) setting(id string) (has bool, another <-chan struct{}) {
	if _, has = ps.settings()[id]; !has && ps.sliced == nil {
		ps.sliced = make(chan struct{})
	}
	return has, ps.sliced
}
