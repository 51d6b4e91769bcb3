package spec

import "fmt"

// CheckDevices checks a valid configuration against the host's devices. lookup returns the MTU of the device with that
// name, in bytes of layer 3, and whether it exists. An uplink device that cannot carry its switch's MTU is a fault at
// the line that binds it. MissingDevices handles devices that do not exist.
func CheckDevices(cfg *Config, lookup func(device string) (mtu int, ok bool)) Faults {
	v := newValidator(cfg)
	v.eachUplink(func(a at, s *Switch, u *Uplink) {
		if mtu, ok := lookup(u.Device); ok && mtu < s.ActualMTU() {
			v.fault(a, shown(u.Device), "the device's MTU is %d, below the %d of switch %s: raise it (ip link set %s "+
				"mtu %d) or lower the switch's mtu",
				mtu, s.ActualMTU(), s.Name, u.Device, s.ActualMTU())
		}
	})
	v.found.faults.sort()
	return v.found.faults
}

// MissingDevices are warnings about devices that do not exist, one line each; they may appear later. lookup is as for
// CheckDevices. other is the device that has a name as an alternative one, "" for none.
func MissingDevices(cfg *Config, lookup func(device string) (mtu int, ok bool), other func(name string) string) (
	warnings []string) {
	v := newValidator(cfg)
	missing := func(a at, device, what string) {
		if _, ok := lookup(device); ok {
			return
		}
		if by := other(device); by != "" {
			warnings = append(warnings, fmt.Sprintf("%s%s: %s: this is another name of device %s, and only a device's "+
				"first name counts here: write %s; the %s is down", v.where(a), a.show(), device, by, by, what))
		} else {
			warnings = append(warnings, fmt.Sprintf("%s%s: %s: there is no such device now; the %s is down until it "+
				"appears", v.where(a), a.show(), device, what))
		}
	}
	v.eachUplink(func(a at, _ *Switch, u *Uplink) { missing(a, u.Device, "uplink") })
	for i := range cfg.Ports {
		if p := &cfg.Ports[i]; p.ActualRole() != Host && p.Device != "" {
			missing(at{}.field("ports").item(i, p.Name).field("device"), p.Device, "port")
		}
	}
	return warnings
}

// eachUplink calls f for every uplink with a device, with the position of the binding.
func (v *validator) eachUplink(f func(a at, s *Switch, u *Uplink)) {
	for i := range v.cfg.Switches {
		s := &v.cfg.Switches[i]
		list := at{}.field("switches").item(i, s.Name).field("uplinks")
		for j := range s.Uplinks {
			if u := &s.Uplinks[j]; u.Device != "" {
				f(list.item(j, u.Name).field("device"), s, u)
			}
		}
	}
}

// where is the position of a for the start of a line, "" if it has none.
func (v *validator) where(a at) string {
	p, ok := v.src.at(a.key)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s:%d:%d: ", v.src.file, p.line, p.column)
}
