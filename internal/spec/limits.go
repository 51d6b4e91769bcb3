package spec

import "strconv"

// Capacity of one host; the kernel's tables have these sizes.
const (
	// MaxSwitches is how many switches a host can have.
	MaxSwitches = 32
	// MaxMembers is how many ports and uplinks the switches of a host can have together.
	MaxMembers = 2047
	// MinMACTable, DefaultMACTable and MaxMACTable bound the host's table of learned MACs.
	MinMACTable     = 4096
	DefaultMACTable = 131072
	MaxMACTable     = 4194304
)

// ActualMACTable is the size of the host's table of learned MACs, the default where none is set.
func (h HostSettings) ActualMACTable() int {
	if h.MACTable == 0 {
		return DefaultMACTable
	}
	return h.MACTable
}

// host checks the settings of the whole host.
func (v *validator) host() {
	a, n := at{}.field("host"), v.cfg.Host.MACTable
	if n != 0 && (n < MinMACTable || n > MaxMACTable) || n == 0 && v.written(a, "macTable") {
		v.fault(a.field("macTable"), strconv.Itoa(n), "a host's table holds %d–%d learned MACs", MinMACTable,
			MaxMACTable)
	}
}

// capacity checks that the declared switches, uplinks and ports do not exceed the capacity of a host. If they do, that
// is one fault, at the first that is too many.
func (v *validator) capacity() {
	if len(v.cfg.Switches) > MaxSwitches {
		v.fault(at{}.field("switches").item(MaxSwitches, ""), "",
			"a host can have at most %d switches, and here are %d", MaxSwitches, len(v.cfg.Switches))
	}
	n := v.cfg.members()
	if over := n - MaxMembers; over > 0 {
		first := max(0, len(v.cfg.Ports)-over)
		v.fault(at{}.field("ports").item(first, ""), "",
			"a host can have at most %d ports and uplinks, and here are %d", MaxMembers, n)
	}
}

// members counts the ports and uplinks of all switches.
func (c *Config) members() int {
	n := len(c.Ports)
	for i := range c.Switches {
		n += len(c.Switches[i].Uplinks)
		if c.Switches[i].Tunnel != nil {
			n++
		}
	}
	return n
}
