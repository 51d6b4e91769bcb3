package agent

import (
	"fmt"
	"math"
	"os"

	"heddle/internal/event"
	"heddle/internal/hostdev"
	"heddle/internal/linkproto"
	"heddle/internal/lldp"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/state"
)

// lldpPart listens and advertises on the uplinks.
type lldpPart struct {
	a    *Agent
	lldp *linkproto.LLDP
	done chan struct{}
}

func (a *Agent) followLLDP(open linkproto.Opener) {
	p := &lldpPart{a: a, done: make(chan struct{})}
	p.lldp = linkproto.StartLLDP(open, a.log, func(r []linkproto.LLDPReport) {
		a.postUnless(p.done, func() { p.reported(r) })
	})
	a.neighbours = p
	a.follow(p)
}

func (p *lldpPart) close() error {
	close(p.done)
	return p.lldp.Close()
}

// settled says on which uplinks LLDP is spoken.
func (p *lldpPart) settled(now inForce) {
	var want []linkproto.LLDPPort
	p.a.state.LLDP = nil
	for _, sw := range now.plan.Switches {
		if sw.LLDP == spec.LLDPNone {
			continue
		}
		for _, u := range sw.Uplinks {
			d, ok := now.devices[u.ID]
			if !ok {
				continue
			}
			port := linkproto.LLDPPort{ID: u.ID, Device: linkproto.Uplink{Ifindex: d.Index, MAC: d.MAC, Up: now.facts[u.ID].Up && !u.Blocked},
				Listen: sw.LLDP != spec.LLDPAdvertise}
			if sw.LLDP != spec.LLDPListen {
				port.Advertise = p.a.advertisement(u.ID, d)
				p.a.state.LLDP = append(p.a.state.LLDP, state.LLDPSaid{ID: u.ID, Chassis: port.Advertise.Chassis, Port: port.Advertise.Port})
			}
			want = append(want, port)
		}
	}
	p.lldp.Want(want)
}

// ethernetOverhead is what an untagged frame has beside its layer 3: header and checksum, in bytes.
const ethernetOverhead = 18

// advertisement is what the physical switch is told: this host, and which of its devices is at the other end of the cable.
func (a *Agent) advertisement(id plan.PortID, d hostdev.Device) *lldp.PDU {
	chassis := derivedMAC(plan.PortID{Name: "chassis"}, a.place)
	p := lldp.PDU{
		Chassis: lldp.ChassisID{Subtype: lldp.ChassisMAC, Value: chassis[:]}, Port: lldp.PortID{Subtype: lldp.PortMAC, Value: d.MAC[:]}, TTL: lldp.TTL,
		PortDescription:   fmt.Sprintf("%s (uplink %s of switch %s)", d.Name, id.Name, id.Switch),
		SystemDescription: "Heddle " + a.version,
		Capabilities:      &lldp.Capabilities{Has: lldp.Bridge | lldp.Station, Enabled: lldp.Bridge},
	}
	p.SystemName, _ = os.Hostname() // without one the name is left out
	if size := d.MTU + ethernetOverhead; size <= math.MaxUint16 {
		p = p.WithMaxFrame(uint16(size))
	}
	return &p
}

// reported publishes the neighbours that came, changed or went; it runs in the loop.
func (p *lldpPart) reported(list []linkproto.LLDPReport) {
	for _, r := range list {
		untold, ok := p.a.quiet.mayTellOfPeer(r.ID)
		if !ok {
			continue
		}
		e := p.a.at("uplink", r.ID)
		e.Kind = event.Neighbour
		e.To = neighbourText(r.Neighbour)
		e.Text = fmt.Sprintf("uplink %s: neighbour %s", r.ID.Name, e.To)
		if r.Change == lldp.Gone {
			e.From, e.To = e.To, ""
			e.Text += " is gone"
		}
		if untold > 0 {
			e.Text += fmt.Sprintf(" (%d changes before it were too many to be told)", untold)
		}
		p.a.events.Publish(e)
		p.a.log.Info(e.Text, "switch", r.ID.Switch)
	}
}

// neighbourText names a neighbour in one line: the system's name where it tells one, and the port.
func neighbourText(n lldp.Neighbour) string {
	name := lldp.Clean(n.PDU.SystemName)
	if name == "" {
		name = n.PDU.Chassis.String()
	}
	return name + " port " + n.PDU.Port.String()
}
