package advise

import (
	"fmt"
	"slices"
	"strings"

	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

func neighbourVLANRules() []Rule {
	return []Rule{{"neighbour-vlan", api.FindingNote, "the physical switch does not name a port group's VLAN",
		"the VLANs that the neighbour announces by LLDP for its port (VLAN names, native VLAN), against the port " +
			"group's",
		"frames of that VLAN are most likely lost beyond the uplink, where nothing counts them; some physical " +
			"switches announce only a part of their VLANs",
		"Add the VLAN to the port of the physical switch, or give the port group the right one.",
		neighbourVLAN}}
}

// mostNamed is how many VLANs a trunk has at most where each of them is expected at the other end: one with more takes
// what there is, and it is enough that the neighbour names one of them.
const mostNamed = 64

// unannounced are the VLANs that a neighbour does not announce, of those that leave by an uplink with a tag; empty
// where no neighbour announces any. Where several do, one of them is enough.
func unannounced(wanted plan.VLANSet, heard []api.Neighbour) (missing plan.VLANSet, by *api.Neighbour) {
	missing = wanted
	missing[0] &^= 1 // untagged frames take the neighbour's native VLAN, whatever it is called
	for i := range heard {
		n := &heard[i]
		if len(n.VLANs) == 0 {
			continue
		}
		if by == nil {
			by = n
		}
		for _, v := range n.VLANs {
			drop(&missing, v.ID)
		}
		drop(&missing, n.PVID)
	}
	all := wanted.Count()
	if by == nil || all > mostNamed && missing.Count() < all-1 {
		return plan.VLANSet{}, nil
	}
	return missing, by
}

func drop(s *plan.VLANSet, id uint16) {
	if s.Has(id) {
		s[id/64] &^= 1 << (id % 64)
	}
}

// carriedBy are the VLANs of a port that an uplink carries. VLANs that it does not carry never reach its neighbour.
func carriedBy(u *plan.Uplink, v *plan.VLAN) plan.VLANSet {
	s := vlansOf(v)
	for i := range s {
		s[i] &= u.VLANs[i]
	}
	return s
}

// namesOf are the VLANs that a neighbour announces, in a few words.
func namesOf(n *api.Neighbour) string {
	var s plan.VLANSet
	for _, v := range n.VLANs {
		s.AddRange(v.ID, v.ID)
	}
	return s.String()
}

// notNamed says that a neighbour does not announce VLANs.
func notNamed(missing plan.VLANSet, uplink string, by *api.Neighbour) string {
	return fmt.Sprintf("VLAN %s is not among those that port %s of %s announces by LLDP at %s: %s", missing, by.Port,
		name(by), uplink, namesOf(by))
}

func neighbourVLAN(l *look) (found []api.Finding) {
	for _, t := range l.teams() {
		if t.first.Policy.VLAN.V.AD {
			continue // the outer tags are the provider's, and VLAN names are those of customers
		}
		for _, k := range t.all() {
			for _, u := range k.members {
				v := l.uplink[u.ID]
				if v == nil || v.LLDP == nil || !l.up(u.ID) {
					continue
				}
				missing, by := unannounced(carriedBy(u, &t.first.Policy.VLAN.V), v.LLDP.Neighbours)
				if by == nil || missing.Count() == 0 {
					continue
				}
				f := t.on("%s", notNamed(missing, u.ID.Name, by))
				f.Change =
					"Add the VLAN to the port of the physical switch; or, if it is another VLAN there, put the " +
						"right one into the port group. The command shows what the neighbour announces."
				f.Command = l.command(u.ID, "uplink show")
				found = append(found, f)
			}
		}
	}
	return found
}

// NeighbourNotes says of a configuration which port groups have VLANs that the physical switch does not announce. heard
// is what LLDP hears at a device.
func NeighbourNotes(cfg *spec.Config, heard func(device string) []api.Neighbour) (lines []string) {
	bare := &spec.Config{Switches: cfg.Switches}
	for i := range cfg.Switches {
		for k := range cfg.Switches[i].PortGroups {
			bare.Ports = append(bare.Ports, spec.Port{Name: fmt.Sprintf("_group-%d", k), Switch: cfg.Switches[i].Name,
				PortGroup: cfg.Switches[i].PortGroups[k].Name})
		}
	}
	resolved, err := plan.ResolveValid(bare, nil)
	if err != nil {
		return nil
	}
	for _, sw := range resolved.Switches {
		for _, p := range sw.Ports {
			lines = append(lines, groupNotes(sw, p, heard)...)
		}
	}
	return lines
}

func groupNotes(sw *plan.Switch, p *plan.Port, heard func(device string) []api.Neighbour) (lines []string) {
	vlan, team := &p.Policy.VLAN.V, &p.Policy.Teaming
	if vlan.AD {
		return nil
	}
	for _, k := range links(sw, slices.Concat(team.Active.V, team.Standby.V)) {
		for _, u := range k.members {
			missing, by := unannounced(carriedBy(u, vlan), heard(u.Device))
			if by == nil || missing.Count() == 0 {
				continue
			}
			lines = append(lines, fmt.Sprintf("switch %s, port group %s: %s", sw.Name, p.PortGroup,
				notNamed(missing, u.ID.Name, by)))
		}
	}
	return lines
}

// whereNotNamed adds to what is said of a port that the neighbours do not announce its VLAN.
func (l *look) whereNotNamed(p *plan.Port, carrying []*plan.Uplink) string {
	var parts []string
	for _, u := range carrying {
		v := l.uplink[u.ID]
		if v == nil || v.LLDP == nil || p.Policy.VLAN.V.AD {
			continue
		}
		missing, by := unannounced(carriedBy(u, &p.Policy.VLAN.V), v.LLDP.Neighbours)
		if by != nil && missing.Count() > 0 {
			parts = append(parts, "; "+notNamed(missing, u.ID.Name, by))
		}
	}
	return strings.Join(parts, "")
}
