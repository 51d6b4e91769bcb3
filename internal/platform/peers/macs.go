package peers

import (
	"net"
	"slices"
	"strings"
)

// mostMACs is how many adapters of a controller's machine are looked for on hosts.
const mostMACs = 8

// ownMACs are the MACs of those adapters of this machine that have an address of the network, with spaces between.
func ownMACs() string {
	all, err := net.Interfaces()
	if err != nil {
		return ""
	}
	global := func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.IsGlobalUnicast()
	}
	var list []string
	for _, i := range all {
		addresses, err := i.Addrs()
		if err == nil && len(i.HardwareAddr) == 6 && slices.ContainsFunc(addresses, global) {
			list = append(list, i.HardwareAddr.String())
		}
	}
	slices.Sort(list)
	return strings.Join(list[:min(len(list), mostMACs)], " ")
}
