package advise

import (
	"strings"

	"heddle/internal/api"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
)

func twinRules() []Rule {
	return []Rule{{"mac-outside", api.FindingWrong, "a device on the wire has a MAC of this host",
		"the chassis, port and sender that neighbours name by LLDP or CDP, and the senders of frames for several " +
			"stations that are no echoes, against the MACs of this host's ports and uplinks",
		"the physical switches see the MAC now here, now there, and what is for one of the two gets lost, as with " +
			"cloned hosts",
		"Give one of the two another MAC; give a cloned host an identity of its own (/etc/machine-id).",
		macOutside}}
}

// macOutside finds neighbours that name a MAC of this host as their own. This host's own word, which comes back where
// two uplinks are joined, has a MAC of this host as its sender, too.
func macOutside(l *look) (found []api.Finding) {
	own := ownMACs(l)
	for _, sw := range l.Host.Plan.Switches {
		for _, u := range sw.Uplinks {
			v := l.uplink[u.ID]
			if v == nil || v.LLDP == nil {
				continue
			}
			for i := range v.LLDP.Neighbours {
				n := &v.LLDP.Neighbours[i]
				mac, whose, is := own.namedBy(n)
				if !is {
					continue
				}
				f := onUplink(u, "%s, at the other end of the uplink, has the MAC %s, which is that of %s", name(n),
					mac, whose)
				f.Change = "Give " + whose + " another MAC (mac: of a port, or that of the device), here or there. " +
					"If one host is a clone of the other: remove /etc/machine-id there, have it made anew " +
					"(systemd-machine-id-setup), and start Heddle again."
				f.Command = l.command(u.ID, "uplink show")
				found = append(found, f)
			}
		}
	}
	return append(found, heardOutside(l)...)
}

// heardOutside finds the ports whose MAC another station has, as their events say: each once, with the last event.
func heardOutside(l *look) (found []api.Finding) {
	at := map[plan.PortID]int{}
	for _, e := range l.Events {
		id := plan.PortID{Switch: e.Switch, Name: e.Port}
		if e.Kind != event.Conflict || e.Uplink == "" || e.MAC == "" || !l.connected(id) {
			continue
		}
		f := api.Finding{Switch: e.Switch, Port: e.Port, Sign: e.Text, FirstSeen: e.Time, LastSeen: e.Time,
			Change:  "Give one of the two stations another MAC, or stop one of them if they are one guest.",
			Command: "heddle mac show " + e.MAC}
		if i, known := at[id]; known {
			f.FirstSeen = found[i].FirstSeen
			found[i] = f
			continue
		}
		at[id] = len(found)
		found = append(found, f)
	}
	return found
}

// macs are MACs of this host, with what has them.
type macs map[string]string

// namedBy returns the MAC of this host that a neighbour says is its own. One that was sent from a MAC of this host is
// the host's own word.
func (m macs) namedBy(n *api.Neighbour) (mac, whose string, is bool) {
	if m[strings.ToLower(n.Source)] != "" {
		return "", "", false
	}
	for _, said := range []string{n.Chassis, n.Port} {
		if whose, is := m[strings.ToLower(said)]; is {
			return said, whose, true
		}
	}
	return "", "", false
}

func ownMACs(l *look) macs {
	all := macs{}
	for id, u := range l.uplink {
		all.add(u.MAC, "uplink "+id.Name)
	}
	for id, p := range l.port {
		all.add(p.MAC, "port "+id.Name)
	}
	delete(all, plan.MAC{}.String())
	return all
}

func (m macs) add(mac, whose string) {
	if mac != "" {
		m[strings.ToLower(mac)] = whose
	}
}
