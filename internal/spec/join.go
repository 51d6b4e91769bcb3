package spec

import "slices"

// Join is a valid own, which a host reads from its file, with the switches and ports of a valid given, which a
// controller hands to the host. A switch is owned as a whole by one of the two. The faults, without lines, are about
// names, devices and addresses that both claim; then the result must not be used. Neither changes.
func Join(own, given *Config) (*Config, Faults) {
	if given == nil || len(given.Switches) == 0 {
		return own, nil
	}
	joined := &Config{Host: own.Host, Switches: slices.Concat(own.Switches, given.Switches),
		Ports: slices.Concat(own.Ports, given.Ports), src: own.src}
	if joined.src == nil {
		joined.src = newSource("")
		joined.src.ports = len(own.Ports)
	}
	v := newValidator(joined)
	v.config()
	faults := v.found.faults
	for i := range faults {
		faults[i].File, faults[i].Line, faults[i].Column = "", 0, 0
	}
	return joined, faults
}
