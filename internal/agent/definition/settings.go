package definition

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

// settings are those of the active slice. One that cannot be read has been refused when it came.
func (d *Part) settings() map[string]spec.PortSettings {
	if s := d.document.Slice; d.sets.of != s {
		d.sets = settings{of: s}
		if s != nil {
			var err error
			if d.sets.list, err = s.Set().Settings(); err != nil {
				d.complain("read the settings of static ports", err)
			}
		}
	}
	return d.sets.list
}

// SettingsOf are those of the static port that the port of an adapter is; none for another port, and for nil.
func (d *Part) SettingsOf(n *state.NIC) (spec.PortSettings, bool) {
	list := d.settings()
	if len(list) == 0 || n == nil || n.ID == "" || n.Conflict != "" {
		return spec.PortSettings{}, false
	}
	s, ok := list[n.ID]
	return s, ok && s.Switch == n.Switch && s.PortGroup == n.PortGroup
}

// AnySettings reports whether the definition sets something for any static port.
func (d *Part) AnySettings() bool { return len(d.settings()) > 0 }

// SameSettings reports whether another version sets the same for static ports.
func (d *Part) SameSettings(b *state.Slice) (bool, error) {
	before, err := d.document.Slice.Set().Settings()
	if err != nil {
		before = nil // it will be replaced
	}
	after, err := b.Set().Settings()
	return maps.EqualFunc(before, after, func(a, b spec.PortSettings) bool { return reflect.DeepEqual(a, b) }), err
}

// Activated takes in that the version that was taken last is active, and wakes who waits for that.
func (d *Part) Activated() {
	d.lacks = nil
	if d.another != nil {
		close(d.another)
		d.another = nil
	}
}

// Setting reports whether the definition sets something for a static port, and returns a channel that is closed when
// another one is active.
func (d *Part) Setting(id string) (has bool, another <-chan struct{}) {
	if _, has = d.settings()[id]; !has && d.another == nil {
		d.another = make(chan struct{})
	}
	return has, d.another
}
