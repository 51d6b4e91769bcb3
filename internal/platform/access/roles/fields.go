package roles

import "strings"

// Of says which permissions a change of a field of the definition takes: all of them. The field is named as
// slice/fields.Diff does, "" for all of an object.
func Of(field string) []Permission {
	if field == "" {
		return []Permission{Network, Security}
	}
	path := strings.TrimPrefix(field, "defaults.")
	top, rest, _ := strings.Cut(path, ".")
	top, _, _ = strings.Cut(top, "[")
	switch {
	case top == "overrides" && rest == "":
		return []Permission{Network, Security}
	case top == "overrides" && rest == "security":
		return []Permission{Security}
	}
	switch top {
	case "security", "checks":
		return []Permission{Security}
	// Those of a switch, a port group and a static port,
	case "name", "kind", "mtu", "uplinks", "lags", "upDelay", "discovery", "healthCheck", "ipfix", "vlan",
		"teaming", "blocked",
		"monitoring", "stormControl", "overrides", "binding", "ports", "labels", "id", "switch", "portGroup",
		"description",
		// and those of a template and a host's entry.
		"switches", "hostPorts",
		// The overlay: which segment a port group is, and how hosts reach one another.
		"tunnel", "overlay":
		return []Permission{Network}
	}
	return []Permission{Network, Security} // nobody has thought about it
}
