package spec

import "slices"

// CheckPort reports whether a port connected at run time fits into a valid configuration: the error is Faults without
// lines, nil if it fits. A name that the configuration already has is a fault that says where.
func CheckPort(cfg *Config, p Port) error {
	_, faults := WithPorts(cfg, []Port{p})
	return faults.err()
}

// WithPorts is a valid cfg with those ports connected at run time that fit into it and with one another, in their order
// after cfg's own. The faults, without lines, are about those that do not fit, which are left out. cfg does not change.
func WithPorts(cfg *Config, ports []Port) (*Config, Faults) {
	merged := &Config{Host: cfg.Host, Switches: cfg.Switches, Ports: slices.Clone(cfg.Ports), src: cfg.src}
	if merged.src == nil {
		merged.src = newSource("")
		merged.src.ports = len(cfg.Ports)
	}
	v := newValidator(merged)
	v.config()
	v.found, v.connecting = collection{}, true
	for _, p := range ports {
		before := len(v.found.faults)
		// An index that no file has: the port's values have no position.
		a := at{}.field("ports").item(-1, p.Name)
		if checkName(p.Name) != "" { // without a name that can be shown, it has no place either
			a = at{key: a.key, step: "port"}
		}
		v.port(a, &p)
		if len(v.found.faults) == before {
			merged.Ports = append(merged.Ports, p)
			v.claim(len(merged.Ports) - 1)
		}
	}
	faults := v.found.faults
	for i := range faults {
		faults[i].File, faults[i].Line, faults[i].Column = "", 0, 0
	}
	return merged, faults
}
