package trace

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"heddle/internal/abi"
	"heddle/internal/diagnose"
	"heddle/internal/fabric"
	"heddle/internal/model"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/spec/printable"
)

// blocked: the port, or the uplink, passes no frame.
func (s *subject) blocked(c *diagnose.Cause, at *place) {
	if at.uplink != nil {
		setBy(c, "uplinks[].blocked", plan.Row{Policy: "blocked", Value: plan.FieldValueOf(true), From: uplinkOf(at)})
		c.Why, c.Change = "the uplink is blocked", "Unblock the uplink."
		if at.uplink.Drained { // as "heddle uplink block" leaves it
			c.Change, c.Command = "Take the uplink back into use.", s.command(at.id, "uplink restore")
			return
		}
		s.edit(c, diagnose.EditUplink, at.id.Name, "blocked: false")
		return
	}
	setRow(c, at.port, "blocked")
	c.Why = fmt.Sprintf("port %s is blocked, as set by the %s", at.id.Name, c.From)
	if from := at.port.Policy.Blocked.From; from != plan.FromPort && !s.overrides(at.port).AllowsBlocked() {
		c.Change = "Unblock the port group: it does not let a single port be unblocked."
		s.edit(c, diagnose.EditGroup, at.port.PortGroup, "blocked: false")
		return
	}
	c.Change = "Unblock the port."
	if _, connected := s.RunTime[at.id.Name]; connected || s.ByCommand[at.id.Name].Blocked {
		c.Command = s.command(at.id, "port unblock")
		return
	}
	s.edit(c, diagnose.EditPort, at.id.Name, "blocked: false")
}

// check: one of the switch's guards dropped the frame.
func (s *subject) check(c *diagnose.Cause, name, when string) {
	setBy(c, "checks."+name, plan.Row{Policy: "checks." + name, Value: plan.FieldValueOf(true),
		From: plan.Source{Level: plan.FromSwitch, Name: s.from.id.Switch}})
	c.Change = fmt.Sprintf("Switch the check off, if %s.", when)
	s.edit(c, diagnose.EditSwitch, s.from.id.Switch, "checks: {"+name+": false}")
}

// healthProbe: the guest sent a frame of the type of probes between hosts.
func (s *subject) healthProbe(c *diagnose.Cause) {
	setBy(c, "healthCheck", plan.Row{Policy: "healthCheck", Value: plan.FieldValueOf(true),
		From: plan.Source{Level: plan.FromSwitch, Name: s.from.id.Switch}})
	c.Why = fmt.Sprintf("the frame has the type of hosts' probes (0x%04x), which no guest may send while the switch "+
		"has a health check", fabric.EtherType)
	c.Change = "Switch the health check off, if the guest is a hypervisor whose own beacons or health check must " +
		"pass; else have the guest stop it."
	s.edit(c, diagnose.EditSwitch, s.from.id.Switch, "healthCheck: false")
}

func (s *subject) forged(c *diagnose.Cause, p *plan.Port) {
	c.Why = fmt.Sprintf("the source %s is not the port's MAC %s", s.src, s.model.MACOf(p.ID))
	c.Change = "Let the port send with other addresses, if a hypervisor, bridge or router is behind it; else correct " +
		"the sender's address."
	s.set(c, p, "security.forgedTransmits", string(spec.Accept))
}

// linkControl: the guest sent a link control protocol that its port does not pass.
func (s *subject) linkControl(c *diagnose.Cause, p *plan.Port) {
	pass := p.Policy.GuestLinkControl
	name := model.LinkControl(s.dst, s.inner)
	if name == "" && !s.dst.IsZero() {
		setRow(c, p, "security.guestLinkControl")
		c.Why = fmt.Sprintf("%s is a link control address, and what the guest sends there is no protocol that a port "+
			"may let pass", s.dst)
		c.Change = "Nothing: have the guest stop it (PAUSE and the like would stop the physical switch's port)."
		return
	}
	c.Why = fmt.Sprintf("the port lets no such protocol of its guest's pass; what it lets pass: %s",
		none(strings.Join(pass.V, ", ")))
	if name == "" { // the frame is not available
		name = spec.PassLLDP
		c.Change = "Let the protocol pass that the guest needs (lacp, lldp, eapol, ptp, cdp), if it is an appliance " +
			"or part of a lab; else leave it."
	} else {
		c.Why = fmt.Sprintf("the guest speaks %s, which the port does not let pass", strings.ToUpper(name))
		c.Change = fmt.Sprintf("Let %s pass, if the guest is an appliance or part of a lab; the physical switch then "+
			"hears it, too.", strings.ToUpper(name))
	}
	s.set(c, p, "security.guestLinkControl", strings.Join(append(slices.Clone(pass.V), name), ","))
}

// guarded: the guest uses an address that is not listed at its port, or sends one in a form that can't be read.
func (s *subject) guarded(c *diagnose.Cause, p *plan.Port) {
	const path = "security.addressGuard.addresses"
	guard := &p.Policy.AddressGuard
	own := strings.Join(slices.Concat(guard.Addresses.V, p.Addresses), ", ")
	setRow(c, p, "security.addressGuard.enabled")
	switch listed := s.listedAt(p); {
	case !s.claimed.IsValid() || listed == p:
		c.Why = fmt.Sprintf("what the frame says of its sender's address can't be read; the port's are: %s", none(own))
		if listed == p {
			c.Why = fmt.Sprintf("%s is listed at the port, and the frame is none of which the guard can read that it "+
				"is from there", s.claimed)
		}
		c.Change = "See what in the guest sends such frames; the command shows them."
		c.Command = s.command(p.ID, "capture", "--stage", "drop", "--reason", c.Reason, "--count", "10")
		return
	case s.claimed.IsUnspecified() || s.claimed.IsMulticast():
		c.Why = fmt.Sprintf("%s is not one of the port's addresses: %s", s.claimed, none(own))
		c.Change = "Correct the guest: nobody sends from this address, but to ask for one."
		return
	case listed != nil:
		c.Why = fmt.Sprintf("%s is not one of the port's addresses: %s; it is listed at port %s", s.claimed, none(own),
			listed.ID.Name)
		c.Change = fmt.Sprintf("List the address here as well, if the guests share it (VRRP); else the guest poses "+
			"as port %s.", listed.ID.Name)
	default:
		c.Why = fmt.Sprintf("%s is not one of the port's addresses: %s", s.claimed, none(own))
		c.Change = "List the address at the port, if it is the guest's own; else see who in the guest uses it."
	}
	was := c.Change
	s.set(c, p, path, strings.Join(append(slices.Clone(guard.Addresses.V), s.claimed.String()), ","))
	setRow(c, p, "security.addressGuard.enabled")
	if c.Edit == nil {
		c.Change = was + " For that, connect the port again."
	}
}

// listedAt returns the port of the switch that lists the claimed address: p itself if it does, nil for none.
func (s *subject) listedAt(p *plan.Port) *plan.Port {
	lists := func(q *plan.Port) bool {
		return slices.ContainsFunc(q.Policy.AddressGuard.Addresses.V, func(text string) bool {
			own, err := spec.ParseGuardAddress(text)
			return err == nil && own.Contains(s.claimed)
		}) || slices.ContainsFunc(q.Addresses, func(text string) bool {
			own, err := netip.ParsePrefix(text)
			return err == nil && own.Addr() == s.claimed
		})
	}
	switch {
	case !s.claimed.IsValid():
		return nil
	case lists(p):
		return p
	}
	for _, sw := range s.Plan.Switches {
		if i := slices.IndexFunc(sw.Ports, lists); i >= 0 && sw.Name == p.ID.Switch {
			return sw.Ports[i]
		}
	}
	return nil
}

// frameTag returns the tag of the frame in words.
func (s *subject) frameTag() string {
	switch {
	case s.tags == 0:
		return "untagged"
	case s.ad:
		return fmt.Sprintf("tagged with 802.1ad VLAN %d", s.vid)
	case s.vid == 0:
		return "tagged with priority only"
	}
	return fmt.Sprintf("tagged with VLAN %d", s.vid)
}

// notInside explains tags that no trunk inside a VNI carries; false for one that is a VLAN's.
func (s *subject) notInside(c *diagnose.Cause) bool {
	switch {
	case s.tags > 1 && s.vid == 0:
		c.Why = "a tag is hidden behind the frame's priority tag, which is not carried inside a VNI: the hidden one " +
			"would be the VLAN"
		c.Change = "Have the guest send the frame with one priority: in the tag of its VLAN."
	case s.ad && s.vid != 0:
		c.Why += ": inside a VNI tags are those of 802.1Q"
		c.Change = "Have the guest send tags of 802.1Q; behind the first tag any other is carried."
	default:
		return false
	}
	return true
}

// tagged: the port does not pass the frame's tag, or an untagged frame.
func (s *subject) tagged(c *diagnose.Cause, p *plan.Port, why abi.Reason) {
	v := &p.Policy.VLAN
	c.Why = fmt.Sprintf("the frame is %s, and the port is %s", s.frameTag(), v.V)
	trunk, outer := []string{}, ""
	if why == abi.ReasonGuestTagged {
		c.Change = "Have the guest send untagged frames; or make the port a trunk, if the guest tags its frames itself."
		if s.tags > 1 && s.vid == 0 {
			c.Why = "a tag is hidden behind the frame's priority tag, and the port's owner may not tag: it is " +
				v.V.String()
		}
	} else {
		c.Change = "Let the trunk carry it."
		if v.V.Set.Count() > 0 {
			trunk = strings.Split(v.V.Set.String(), ",")
		}
	}
	ad := s.ad && s.tags > 0 || v.V.AD && s.tags == 0
	if ad {
		outer = ", outer: 802.1ad"
	}
	id := strconv.Itoa(int(s.vid))
	if p.VNI != 0 && why == abi.ReasonVLANNotAllowed && s.notInside(c) {
		return
	}
	if !(v.V.Mode == plan.VLANTrunk && v.V.Set.Has(s.vid)) {
		trunk = append(trunk, id)
	}
	if why == abi.ReasonVLANNotAllowed && s.vid != 0 && v.V.AD != s.ad {
		c.Why += ": its tags are of the other protocol"
	}
	set := fmt.Sprintf(`vlan: {trunk: ["%s"]%s}`, strings.Join(trunk, `", "`), outer)
	flags := "--trunk " + strings.Join(trunk, ",")
	if ad {
		flags += " --qinq"
	}
	s.fix(c, p, remedy{policy: "vlan", level: v.From, set: set, flags: flags})
}

func (s *subject) limit(c *diagnose.Cause, p *plan.Port) {
	l := &p.Policy.Learning
	c.Why = fmt.Sprintf("%s is a new address, and the port holds as many as it may: %d", s.src, l.Limit.V)
	if more := min(max(2*l.Limit.V, 16), spec.MaxMACs); more > l.Limit.V {
		c.Change = "Raise the limit, if that many stations are meant to be behind the port: " +
			s.command(p.ID, "mac list --learned --port")
		s.set(c, p, "security.macLearning.limit", strconv.Itoa(more))
		return
	}
	c.Change = "Let frames of addresses beyond the limit pass unlearned."
	s.set(c, p, "security.macLearning.limitPolicy", string(spec.LimitAllow))
}

// tableFull: the host's table is full for the port.
func (s *subject) tableFull(c *diagnose.Cause, p *plan.Port) {
	l := &p.Policy.Learning
	c.Why = fmt.Sprintf("%s is a new address, and the port holds its share of the host's table: %d of %d (its own "+
		"limit is %d)", s.src, p.MACShare, s.Plan.MACTable, l.Limit.V)
	c.Change = "Set a larger `host: {macTable: …}` and restart the agent; or lower the limits of ports that need " +
		"fewer; or let frames of addresses beyond it pass unlearned."
	s.set(c, p, "security.macLearning.limitPolicy", string(spec.LimitAllow))
}

// storm: the port has sent more of such frames than it may.
func (s *subject) storm(c *diagnose.Cause, p *plan.Port) {
	storm := &p.Policy.StormControl
	rate, name, what := storm.UnknownUnicast, "unknownUnicast", "frames for unknown destinations"
	switch {
	case s.dst.IsBroadcast():
		rate, name, what = storm.Broadcast, "broadcast", "broadcast frames"
	case s.dst.IsGroup():
		rate, name, what = storm.Multicast, "multicast", "multicast frames"
	}
	c.Why = fmt.Sprintf("the port may send %d %s per second, and has used that up", rate.V, what)
	c.Change = "See why the guest sends so many; if it should, raise the rate."
	s.set(c, p, "stormControl."+name, strconv.Itoa(min(2*rate.V, spec.MaxStormRate)))
}

// nobody: there is no receiver in the segment.
func (s *subject) nobody(c *diagnose.Cause, at *place, why abi.Reason) {
	c.Why = fmt.Sprintf("nobody else is in %s", s.res.Segment)
	if why == abi.ReasonUnknownUnicast {
		c.Why = fmt.Sprintf("%s is not known in %s, and nobody there takes frames for unknown destinations", s.dst,
			s.res.Segment)
	}
	c.Command = "heddle port list --switch " + printable.ShellWord(s.from.id.Switch)
	if at.port != nil {
		setRow(c, at.port, "vlan")
	} else {
		c.From = "switch " + at.id.Switch
	}
	if why == abi.ReasonNoReceiver || s.to == nil || s.to.port == nil || s.to.sw != s.from.sw ||
		!s.model.Admits(s.to.id, s.res.Segment) {
		c.Change = "Correct the destination or, if a port is to be reached there, put it into that segment."
		return
	}
	// If the requested port is there, it must learn the MACs behind it.
	p := s.to.port
	c.Change = "If the destination is behind that port, have the port learn and take what is not known."
	s.fix(c, p, settings(p, plan.Setting{Path: "security.macLearning.enabled", Value: "true"},
		plan.Setting{Path: "security.macLearning.unicastFlooding", Value: "true"}))
}

// tooLong: the packet is longer than the switch's MTU, or than the receiver's.
func (s *subject) tooLong(c *diagnose.Cause, at *place) {
	if s.layer3 > at.sw.MTU {
		setBy(c, "mtu", plan.Row{Policy: "mtu", Value: plan.FieldValueOf(at.sw.MTU), Unit: "bytes",
			From: plan.Source{Level: plan.FromSwitch, Name: at.id.Switch}})
		c.Why = fmt.Sprintf("the packet has %d bytes, and the switch's MTU is %d", s.layer3, at.sw.MTU)
		c.Change = "Lower the MTU at the sender, or raise the switch's and then that of the devices on the way."
		if s.layer3 > spec.MaxMTU {
			c.Change = fmt.Sprintf("Lower the MTU at the sender: no switch carries more than %d bytes.", spec.MaxMTU)
			return
		}
		s.edit(c, diagnose.EditSwitch, at.id.Switch, fmt.Sprintf("mtu: %d", s.layer3))
		return
	}
	mtu := s.Facts[at.id].MTU
	notSet(c, "the device's MTU", strconv.Itoa(mtu), "device "+at.device())
	switch at.end() {
	case vnicEnd:
		c.Why = fmt.Sprintf("the packet has %d bytes, and the MTU of device %s, or of the guest's adapter behind it, "+
			"is %d", s.layer3, at.device(), mtu)
		c.Change = "Lower the MTU at the sender, or raise the device's and that of the guest's adapter."
	case uplinkEnd:
		c.Why = fmt.Sprintf("the packet has %d bytes, and the MTU of the uplink's device %s is %d", s.layer3,
			at.device(),
			mtu)
		c.Change = "Lower the MTU at the sender, or raise the device's and that of the physical switch's port."
	default:
		c.Why = fmt.Sprintf("the packet has %d bytes, and the MTU of the host's interface %s is %d", s.layer3,
			at.device(), mtu)
		c.Change = "Lower the MTU at the sender, or raise the interface's."
	}
	c.Command = fmt.Sprintf("ip link set dev %s mtu %d", at.device(), s.layer3)
	if at.port != nil && at.port.Role == spec.Host {
		setBy(c, "ports[].mtu", plan.Row{Policy: "mtu", Value: plan.FieldValueOf(mtu), Unit: "bytes",
			From: plan.Source{Level: plan.FromPort, Name: at.id.Name}})
		s.mendHostMTU(c, at.port)
	}
}

// receiverDown: the device that the copy would leave by is not up.
func (s *subject) receiverDown(c *diagnose.Cause, at *place) {
	c.From = "the device's state"
	c.Command = printable.Command("ip", "link", "set", "dev", at.device(), "up")
	switch at.end() {
	case uplinkEnd:
		c.Why = fmt.Sprintf("its device %s is down or has no link", at.device())
		c.Change = "Bring the device up; if it is up, look at the cable and the port of the physical switch."
	case hostEnd:
		c.Why = fmt.Sprintf("the host's interface %s is down", at.device())
		c.Change = "Bring the interface up."
	default:
		c.Why = fmt.Sprintf("its device %s, or the guest's adapter behind it, is down", at.device())
		c.Change = "Start the guest, or bring the device and the guest's adapter up."
	}
}

func (s *subject) mendHostMTU(c *diagnose.Cause, p *plan.Port) {
	if own, ok := s.RunTime[p.ID.Name]; ok {
		own.MTU = 0
		c.Command = connectCommand(own, p.ID.Switch, fmt.Sprintf("--mtu %d", s.layer3))
		return
	}
	s.edit(c, diagnose.EditPort, p.ID.Name, fmt.Sprintf("mtu: %d", s.layer3))
}

func none(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}
