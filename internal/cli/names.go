package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/spec/known"
)

// Pick finds the one object of that name; if several switches have one, --switch must say which. n describes such an
// object in errors.
func Pick[T any](all []T, n known.Names, name, sw string, key func(T) (sw, name string)) (T, error) {
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
		return zero, Usagef("%d switches have %s %q: say which with --switch", len(found), n.What, name)
	}
	if sw != "" {
		n.Owner = "switch " + known.Shown(sw)
	}
	return zero, &MissingError{Text: n.Missing(name)}
}

// HasSwitch returns an error for a switch that does not exist; "" stands for all.
func HasSwitch(s *api.State, name string) error {
	if name == "" {
		return nil
	}
	_, err := Pick(s.Switches, known.Names{What: "switch"}, name, "", func(v api.Switch) (string, string) {
		return v.Name, v.Name
	})
	return err
}

// Has returns an error for a switch, port or uplink that the agent does not have; "" stands for all.
func (t *Target) Has(c *cobra.Command, sw, end string) error {
	if sw == "" && end == "" {
		return nil
	}
	s, err := t.State(c)
	if err != nil {
		return err
	}
	if err := HasSwitch(s, sw); err != nil {
		return err
	}
	return HasEnd(s, end)
}

// PortsOf returns the names of ports, and the meaning of other names, such as those of devices.
func PortsOf(s *api.State) known.Names {
	n := known.Names{What: "port", Else: UplinksOf(s, "").Else}
	for _, p := range s.Ports {
		n.All = append(n.All, p.Name)
		deviceOf(n.Else, p.Device, p.Name)
	}
	for _, u := range s.Uplinks {
		n.Else[u.Name] = "an uplink"
	}
	return n
}

// UplinksOf returns the names of a switch's uplinks, "" for all switches, and the meaning of other names.
func UplinksOf(s *api.State, sw string) known.Names {
	n := known.Names{What: "uplink", Else: map[string]string{}}
	for _, u := range s.Uplinks {
		if sw == "" || u.Switch == sw {
			n.All = append(n.All, u.Name)
			deviceOf(n.Else, u.Device, u.Name)
		}
	}
	return n
}

// EndsOf returns the names of ports and uplinks, which have counters, addresses and events.
func EndsOf(s *api.State) known.Names {
	n := PortsOf(s)
	n.What, n.All = "port or uplink", append(n.All, UplinksOf(s, "").All...)
	return n
}

// HasEnd returns an error for a port or uplink that does not exist; "" stands for all.
func HasEnd(s *api.State, name string) error {
	n := EndsOf(s)
	if name == "" || slices.Contains(n.All, name) {
		return nil
	}
	return &MissingError{Text: n.Missing(name)}
}

// deviceOf records the owner of a device's name, if the owner has another name.
func deviceOf(to map[string]string, device, owner string) {
	if device != "" && device != owner {
		to[device] = "the device of " + owner
	}
}
