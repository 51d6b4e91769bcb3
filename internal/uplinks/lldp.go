package uplinks

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"heddle/internal/host/hostdev"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/uplinks/linkproto"
	"heddle/internal/uplinks/lldp"
	"heddle/internal/uplinks/memory"
)

// LLDP listens and advertises on the uplinks.
type LLDP struct {
	host Host
	self Self
	// Used in the loop alone: the rate limiter of reports about an uplink, and the number of changes since the last
	// report.
	limit  event.Limiter[plan.PortID]
	untold map[plan.PortID]int
	lldp   *linkproto.LLDP
	cdp    *linkproto.LLDP
	done   chan struct{}
}

// Self is what a host advertises about itself.
type Self struct {
	Chassis plan.MAC // unique among all hosts
	Version string   // of the program
}

// FollowLLDP starts to listen and to advertise.
func FollowLLDP(h Host, self Self, open linkproto.Opener) *LLDP {
	p := &LLDP{host: h, self: self, limit: h.Limit, untold: map[plan.PortID]int{}, done: make(chan struct{})}
	report := func(r []linkproto.LLDPReport) { h.Post(p.done, func() { p.reported(r) }) }
	p.lldp, p.cdp = linkproto.StartLLDP(open, h.Log, report), linkproto.StartCDP(open, h.Log, report)
	return p
}

// Status returns the LLDP state of an uplink, with the neighbours that only CDP knows; false if LLDP is off there.
func (p *LLDP) Status(id plan.PortID) (linkproto.LLDPStatus, bool) {
	s, ok := p.lldp.Status(id)
	also, _ := p.cdp.Status(id)
	for _, n := range also.Neighbours {
		if !slices.ContainsFunc(s.Neighbours, func(o lldp.Neighbour) bool { return sameDevice(o.PDU, n.PDU) }) {
			s.Neighbours = append(s.Neighbours, n)
		}
	}
	s.In, s.Bad, s.Refused = s.In+also.In, s.Bad+also.Bad, s.Refused+also.Refused
	return s, ok
}

// sameDevice reports whether a device says both by LLDP and by CDP, whose name may have the domain, or a serial number
// in brackets, besides.
func sameDevice(byLLDP, byCDP lldp.PDU) bool {
	short := func(s string) string {
		if i := strings.IndexAny(s, ".("); i > 0 {
			s = s[:i]
		}
		return strings.ToLower(s)
	}
	return byLLDP.SystemName != "" && short(byLLDP.SystemName) == short(byCDP.SystemName)
}

// Close ends LLDP and CDP.
func (p *LLDP) Close() error {
	close(p.done)
	return errors.Join(p.lldp.Close(), p.cdp.Close())
}

// Settled updates on which uplinks LLDP runs.
func (p *LLDP) Settled(now InForce) {
	var want []linkproto.LLDPPort
	p.host.Memory.LLDP = nil
	for _, sw := range now.Plan.Switches {
		if sw.LLDP == spec.LLDPNone {
			continue
		}
		for _, u := range sw.Uplinks {
			d, ok := now.Devices[u.ID]
			if !ok {
				continue
			}
			port := linkproto.LLDPPort{ID: u.ID, Device: linkproto.Uplink{Ifindex: d.Index, MAC: d.MAC,
				Up: now.Facts[u.ID].Up && !u.Blocked},
				Listen: sw.LLDP != spec.LLDPAdvertise}
			if sw.LLDP != spec.LLDPListen {
				port.Advertise = p.self.advertisement(u.ID, d)
				p.host.Memory.LLDP = append(p.host.Memory.LLDP,
					memory.LLDPSaid{ID: u.ID, Chassis: port.Advertise.Chassis, Port: port.Advertise.Port})
			}
			want = append(want, port)
		}
	}
	own := now.own()
	p.lldp.Own(own)
	p.cdp.Own(own)
	p.lldp.Want(want)
	p.cdp.Want(heardOnly(want))
}

// heardOnly are the uplinks that are listened on.
func heardOnly(ports []linkproto.LLDPPort) (heard []linkproto.LLDPPort) {
	for _, p := range ports {
		if p.Listen {
			p.Advertise = nil
			heard = append(heard, p)
		}
	}
	return heard
}

// ethernetOverhead is the length of an untagged frame beyond its layer 3 content: header and checksum, in bytes.
const ethernetOverhead = 18

// advertisement returns what is advertised to the physical switch: this host, and which of its devices is at the other
// end of the cable.
func (s Self) advertisement(id plan.PortID, d hostdev.Device) *lldp.PDU {
	p := lldp.PDU{
		Chassis: lldp.ChassisID{Subtype: lldp.ChassisMAC, Value: s.Chassis[:]}, Port: lldp.PortID{Subtype: lldp.PortMAC,
			Value: d.MAC[:]}, TTL: lldp.TTL,
		PortDescription:   fmt.Sprintf("%s (uplink %s of switch %s)", d.Name, id.Name, id.Switch),
		SystemDescription: "Heddle " + s.Version,
		Capabilities:      &lldp.Capabilities{Has: lldp.Bridge | lldp.Station, Enabled: lldp.Bridge},
	}
	p.SystemName, _ = os.Hostname() // if it is unknown, the name is left out
	if size := d.MTU + ethernetOverhead; size <= math.MaxUint16 {
		p = p.WithMaxFrame(uint16(size))
	}
	return &p
}

// reported publishes the neighbours that appeared, changed or disappeared; it runs in the loop.
func (p *LLDP) reported(list []linkproto.LLDPReport) {
	for _, r := range list {
		untold, ok := p.mayTell(r.ID)
		if !ok {
			continue
		}
		e := event.Event{Kind: event.Neighbour, Switch: r.ID.Switch, Uplink: r.ID.Name}
		e.To = neighbourText(r.Neighbour)
		e.Text = fmt.Sprintf("uplink %s: neighbour %s", r.ID.Name, e.To)
		if r.Change == lldp.Gone {
			e.From, e.To = e.To, ""
			e.Text += " is gone"
		}
		if untold > 0 {
			e.Text += fmt.Sprintf(" (%d changes before it were too many to report)", untold)
		}
		p.host.Events.Publish(e)
		p.host.Log.Info(e.Text, "switch", r.ID.Switch)
	}
}

// mayTell reports whether a change of an uplink's neighbours may be reported, and how many earlier changes were not.
func (p *LLDP) mayTell(uplink plan.PortID) (untold int, ok bool) {
	if !p.limit.Allow(uplink, time.Now()) {
		p.untold[uplink]++
		return 0, false
	}
	untold = p.untold[uplink]
	delete(p.untold, uplink)
	return untold, true
}

// neighbourText names a neighbour in one line: the system's name, if it announces one, and the port.
func neighbourText(n lldp.Neighbour) string {
	name := lldp.Clean(n.PDU.SystemName)
	if name == "" {
		name = n.PDU.Chassis.String()
	}
	return name + " port " + n.PDU.Port.String()
}

// PlugText names the port at the other end of an uplink for people: "port PORT of SYSTEM".
func PlugText(n lldp.Neighbour) string {
	name := lldp.Clean(n.PDU.SystemName)
	if name == "" {
		name = n.PDU.Chassis.String()
	}
	return "port " + n.PDU.Port.String() + " of " + name
}
