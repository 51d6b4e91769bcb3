package agent

import (
	"fmt"

	"heddle/internal/plan"
)

// ownMAC is the address a port answers to, and what its owner does that the policy rejects; "" when nothing (S3).
type ownMAC struct {
	mac       plan.MAC
	violation string
}

// ownMACs are the effective MACs of a switch's ports (docs/reference/frame-rules.md section 1). The kernel decides by the same
// rules; here they are for people.
func ownMACs(sw *plan.Switch, facts plan.Facts) map[plan.PortID]ownMAC {
	taken := map[plan.MAC]string{}
	for _, u := range sw.Uplinks {
		if f, ok := facts[u.ID]; ok && !f.DeviceMAC.IsZero() {
			taken[f.DeviceMAC] = "uplink " + u.ID.Name
		}
	}
	for _, p := range sw.Ports {
		if !p.InitialMAC.IsZero() {
			taken[p.InitialMAC] = "port " + p.ID.Name
		}
	}
	own := make(map[plan.PortID]ownMAC, len(sw.Ports))
	for _, p := range sw.Ports {
		o := ownMACOf(p, facts[p.ID].SeenMAC, taken)
		if !o.mac.IsZero() && o.mac != p.InitialMAC {
			taken[o.mac] = "port " + p.ID.Name
		}
		own[p.ID] = o
	}
	return own
}

// ownMACOf is one port's, given the address its adapter is seen to use and whose the others are.
func ownMACOf(p *plan.Port, seen plan.MAC, taken map[plan.MAC]string) ownMAC {
	if seen.IsZero() || seen == p.InitialMAC {
		return ownMAC{mac: p.InitialMAC}
	}
	other, dup := taken[seen]
	switch {
	case seen.IsGroup():
		return ownMAC{p.InitialMAC, fmt.Sprintf("the adapter uses the group address %s", seen)}
	case dup:
		return ownMAC{p.InitialMAC, fmt.Sprintf("the adapter uses %s, the MAC of %s", seen, other)}
	case !p.InitialMAC.IsZero() && !p.Policy.MACChanges.V:
		return ownMAC{p.InitialMAC, fmt.Sprintf("the adapter uses %s instead of %s, and the policy rejects MAC changes", seen, p.InitialMAC)}
	}
	return ownMAC{mac: seen}
}
