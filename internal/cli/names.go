package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/spec/known"
)

// pick finds the one object of that name; where several switches have one, --switch must say which. n says what such an
// object is.
func pick[T any](all []T, n known.Names, name, sw string, key func(T) (sw, name string)) (T, error) {
	var zero T
	var found []T
	n.All = nil
	for _, v := range all {
		s, its := key(v)
		if sw != "" && s != sw {
			continue
		}
		if n.All = append(n.All, its); its == name {
			found = append(found, v)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return zero, usagef("%d switches have %s %q: say which with --switch", len(found), n.What, name)
	}
	if sw != "" {
		n.Owner = "switch " + known.Shown(sw)
	}
	return zero, &missingError{n.Missing(name)}
}

// hasSwitch complains about a switch that there is not; "" stands for all.
func hasSwitch(s *api.State, name string) error {
	if name == "" {
		return nil
	}
	_, err := pick(s.Switches, known.Names{What: "switch"}, name, "", func(v api.Switch) (string, string) {
		return v.Name, v.Name
	})
	return err
}

// has complains about a switch, port or uplink that the agent does not have; "" stands for all.
func (t *target) has(c *cobra.Command, sw, end string) error {
	if sw == "" && end == "" {
		return nil
	}
	s, err := t.state(c)
	if err != nil {
		return err
	}
	if err := hasSwitch(s, sw); err != nil {
		return err
	}
	return hasEnd(s, end)
}

// portsOf returns the ports, and what names mean that no port has.
func portsOf(s *api.State) known.Names {
	n := known.Names{What: "port", Else: uplinksOf(s, "").Else}
	for _, p := range s.Ports {
		n.All = append(n.All, p.Name)
		deviceOf(n.Else, p.Device, p.Name)
	}
	for _, u := range s.Uplinks {
		n.Else[u.Name] = "an uplink"
	}
	return n
}

// uplinksOf returns the uplinks of a switch, "" for all, and what names mean that no uplink has.
func uplinksOf(s *api.State, sw string) known.Names {
	n := known.Names{What: "uplink", Else: map[string]string{}}
	for _, u := range s.Uplinks {
		if sw == "" || u.Switch == sw {
			n.All = append(n.All, u.Name)
			deviceOf(n.Else, u.Device, u.Name)
		}
	}
	return n
}

// endsOf are ports and uplinks: what counters, addresses and events are of.
func endsOf(s *api.State) known.Names {
	n := portsOf(s)
	n.What, n.All = "port or uplink", append(n.All, uplinksOf(s, "").All...)
	return n
}

// hasEnd complains about a port or uplink that there is not; "" stands for all.
func hasEnd(s *api.State, name string) error {
	n := endsOf(s)
	if name == "" || slices.Contains(n.All, name) {
		return nil
	}
	return &missingError{n.Missing(name)}
}

// deviceOf notes what a device's name means, where it is not its owner's name.
func deviceOf(to map[string]string, device, owner string) {
	if device != "" && device != owner {
		to[device] = "the device of " + owner
	}
}
