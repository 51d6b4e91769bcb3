package spec

// What one host has room for; the kernel's tables have these sizes.
const (
	// MaxSwitches is how many switches a host can have.
	MaxSwitches = 32
	// MaxMembers is how many ports and uplinks the switches of a host can have together.
	MaxMembers = 2047
)

// room checks that the host has room for the declared switches, uplinks and ports; what is too much is one fault, at the first
// that is.
func (v *validator) room() {
	if len(v.cfg.Switches) > MaxSwitches {
		v.fault(at{}.field("switches").item(MaxSwitches, ""), "", "a host has room for %d switches, and here are %d", MaxSwitches, len(v.cfg.Switches))
	}
	n := v.members()
	if over := n - MaxMembers; over > 0 {
		first := max(0, len(v.cfg.Ports)-over)
		v.fault(at{}.field("ports").item(first, ""), "", "a host has room for %d ports and uplinks, and here are %d", MaxMembers, n)
	}
}

// members counts the ports and uplinks of all switches.
func (v *validator) members() int {
	n := len(v.cfg.Ports)
	for i := range v.cfg.Switches {
		n += len(v.cfg.Switches[i].Uplinks)
	}
	return n
}
