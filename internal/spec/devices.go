package spec

import "fmt"

// CheckDevices holds a valid configuration against the host's devices. lookup gives the MTU of the device of that name,
// in bytes of layer 3, and whether there is one. An uplink device that cannot carry its switch's MTU is a fault at the
// line that binds it; a device that is not there is a warning, one line each, since it may appear later.
func CheckDevices(cfg *Config, lookup func(device string) (mtu int, ok bool)) (faults Faults, warnings []string) {
	v := newValidator(cfg)
	missing := func(a at, format string, args ...any) {
		warnings = append(warnings, v.where(a)+fmt.Sprintf(format, args...))
	}
	for i := range cfg.Switches {
		s := &cfg.Switches[i]
		list := at{}.field("switches").item(i, s.Name).field("uplinks")
		for j := range s.Uplinks {
			u := &s.Uplinks[j]
			a := list.item(j, u.Name).field("device")
			if u.Device == "" {
				continue
			}
			mtu, ok := lookup(u.Device)
			switch {
			case !ok:
				missing(a, "%s: %s: there is no such device now; the uplink is down until it appears", a.show(), u.Device)
			case mtu < s.ActualMTU():
				v.fault(a, shown(u.Device), "the device's MTU is %d, below the %d of switch %s: raise it (ip link set %s mtu %d) or lower the switch's mtu",
					mtu, s.ActualMTU(), s.Name, u.Device, s.ActualMTU())
			}
		}
	}
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		if p.ActualRole() == Host || p.Device == "" {
			continue
		}
		if _, ok := lookup(p.Device); !ok {
			a := at{}.field("ports").item(i, p.Name).field("device")
			missing(a, "%s: %s: there is no such device now; the port is down until it appears", a.show(), p.Device)
		}
	}
	v.faults.sort()
	return v.faults, warnings
}

// where is the position of a for the start of a line, "" when it has none.
func (v *validator) where(a at) string {
	p, ok := v.src.at(a.key)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s:%d:%d: ", v.src.file, p.line, p.column)
}
