package compile

import (
	"fmt"
	"slices"
	"time"

	"heddle/internal/abi"
	"heddle/internal/binding"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// Image is one half of the plan tables, ready to be written.
type Image struct {
	Ports    []abi.Port // by slot
	VLANSets []abi.VLANSet
	Teams    []abi.Team
	Segments map[uint8][]abi.SegmentChunk // by switch id
	Groups   []abi.Group
	Members  []abi.MemberChunk
	Owners   []abi.OwnerBucket
	// GuardAddresses are the addresses that the owners of ports with an address guard may use.
	GuardAddresses []abi.GuardAddress
	// OwnerSeed is the seed under which Owners was built.
	OwnerSeed uint64
}

// Tables compiles the desired state, with the slots of s. It is pure: the same input gives the same image.
func Tables(d binding.Desired, s *Slots, ticksPerSecond uint64) (*Image, error) {
	c := &compiler{
		d: d, slots: s, hz: ticksPerSecond,
		img:      &Image{Ports: make([]abi.Port, abi.MaxPorts), Segments: map[uint8][]abi.SegmentChunk{}},
		owners:   make([]owned, 0, len(d.Facts)),
		setIndex: map[plan.VLANSet]uint16{}, teamIndex: map[abi.Team]uint16{}, teamOf: map[teamLists]uint16{},
		lists: map[*plan.Effective]*entries{}, guards: map[string]guardList{},
	}
	c.img.Groups = []abi.Group{{}}
	for _, sw := range d.Plan.Switches {
		if err := c.compileSwitch(sw); err != nil {
			return nil, fmt.Errorf("switch %s: %w", sw.Name, err)
		}
	}
	c.img.Owners, c.img.OwnerSeed = buildOwners(c.owners)
	return c.img, nil
}

type compiler struct {
	owners    []owned
	d         binding.Desired
	slots     *Slots
	hz        uint64
	img       *Image
	families  uint16 // number of families so far: groups of ports that are siblings
	setIndex  map[plan.VLANSet]uint16
	teamIndex map[abi.Team]uint16
	teamOf    map[teamLists]uint16
	guards    map[string]guardList
	// lists are the entries of teams in which no entry rests, by the policy that ports share.
	lists map[*plan.Effective]*entries
}

// connected returns the state of a port whose device exists. A port without an attachment does not exist for the
// kernel.
func (c *compiler) connected(id plan.PortID) (plan.Fact, binding.Attachment, bool) {
	f, known := c.d.Facts[id]
	a, attached := c.d.Attachments[id]
	return f, a, known && attached
}

// put sets the record of the port at a slot.
func (c *compiler) put(slot uint32, rec abi.Port) {
	rec.Epoch = c.slots.Epochs[slot]
	c.img.Ports[slot] = rec
}

// compileSwitch looks ports up as rarely as possible: with a thousand ports, most of the time of compiling is spent on
// look-ups.
func (c *compiler) compileSwitch(sw *plan.Switch) error {
	own := effectiveMACs(sw, func(id plan.PortID) (plan.Fact, bool) { f, _, ok := c.connected(id); return f, ok })
	all, err := c.parts(sw, own)
	if err != nil {
		return err
	}
	for i := range all {
		if err := c.compilePart(all[i].Switch, all[i].id, all[i].own); err != nil {
			return err
		}
	}
	return nil
}

// compilePart compiles the VLANs of a switch, or its overlay segments.
func (c *compiler) compilePart(sw *plan.Switch, id uint8, own []OwnMAC) error {
	flags := switchFlags(sw)
	receivers := make([]receiver, 0, len(sw.Ports)+len(sw.Uplinks))
	owners := make([]sharedMAC, 0, len(sw.Ports))
	for i, p := range sw.Ports {
		f, a, ok := c.connected(p.ID)
		if !ok {
			continue
		}
		rec, err := c.compilePort(sw, p, &f, a, own[i])
		if err != nil {
			return fmt.Errorf("port %s: %w", p.ID.Name, err)
		}
		rec.SwitchID, rec.SwitchMTU = id, uint32(sw.MTU)
		if listens(p, &f) {
			flags |= abi.SwitchHasPromiscuous
		}
		if p.Policy.Learning.Enabled.V {
			flags |= abi.SwitchLearns
		}
		if len(p.Policy.GuestLinkControl.V) > 0 {
			flags |= abi.SwitchPassesControl
		}
		slot := c.slots.Ports[p.ID]
		c.put(slot, rec)
		receivers = append(receivers, receiver{slot: uint16(slot), port: p, floods: rec.Flags&abi.PortFloods != 0,
			promiscuous: rec.Flags&abi.PortPromiscuous != 0})
		if m := own[i].MAC; !m.IsZero() {
			owners = append(owners, sharedMAC{mac: m, slot: slot, wait: f.Wait})
		}
	}
	c.compileOwners(id, owners)
	c.compileSiblings(receivers)
	for _, r := range receivers {
		c.img.Ports[r.slot].Flags |= flags
	}
	return c.compileSegments(id, append(receivers, c.compileUplinks(sw, id, flags)...))
}

// switchFlags returns the flags of the switch itself; its ports add more.
func switchFlags(sw *plan.Switch) uint32 {
	var flags uint32
	set := func(on bool, flag uint32) {
		if on {
			flags |= flag
		}
	}
	set(sw.ReversePath, abi.SwitchReversePath)
	set(sw.ReversePathPromiscuous, abi.SwitchReversePathPromiscuous)
	set(sw.BlockGuestBPDU, abi.SwitchBlocksBPDU)
	set(len(sw.Uplinks) > 0, abi.SwitchHasUplinks)
	set(sw.Metered(), abi.SwitchMeters)
	return flags
}

// listens reports whether the port gets copies of frames that are not addressed to it (D1).
func listens(p *plan.Port, f *plan.Fact) bool {
	return p.Policy.Promiscuous.V && f.Promiscuous != plan.AsksNo
}

// compilePort makes the record of a connected port.
func (c *compiler) compilePort(sw *plan.Switch, p *plan.Port, f *plan.Fact, a binding.Attachment, own OwnMAC) (abi.Port,
	error) {
	pol := p.Policy
	rec := abi.Port{Ifindex: a.Ifindex, MAC: own.MAC, MTU: uint32(f.MTU), Flags: abi.PortConnected}
	for _, b := range []struct {
		on   bool
		flag uint32
	}{
		{f.Up, abi.PortUp},
		{pol.Blocked.V || f.LoopBlocked != nil, abi.PortBlocked},
		{a.PeerRedirect && !IsTrunk(p), abi.PortPeerRedirect}, // it would miss the program of the device's sending side
		{pol.Learning.Enabled.V, abi.PortLearns},
		{pol.Learning.Enabled.V && pol.Learning.UnicastFlooding.V, abi.PortFloods},
		{pol.Learning.LimitPolicy.V == spec.LimitDrop, abi.PortLimitDrops},
		{listens(p, f), abi.PortPromiscuous},
		{pol.ForgedTransmits.V, abi.PortForgedOk},
		{p.TxUplink, abi.PortTxUplink},
		{!own.Violation.None(), abi.PortViolation},
		{pol.VLAN.V.AD, abi.PortOuterAD},
	} {
		if b.on {
			rec.Flags |= b.flag
		}
	}
	c.compileOverlay(&rec, sw, p)
	rec.Rules = linkControlRules(pol.GuestLinkControl.V)
	if f.LoopBlocked != nil && !pol.Blocked.V { // the reason of the policy has precedence
		rec.Rules |= abi.RuleLoopBlocked
	}
	if f.Waits() {
		rec.Rules |= abi.RuleWaits
		rec.Wait = f.Wait
		if f.Left {
			rec.Rules |= abi.RuleLeft
		}
	}
	if err := c.compileGuard(&rec, sw, p); err != nil {
		return rec, err
	}
	compileStormControl(&rec, &pol.StormControl)
	if len(sw.Uplinks) > 0 && rec.StormRate[abi.ClassUnicast] == 0 {
		rec.Flags |= abi.PortUnknownLeaves // unless another port is found to want them: see wanted
	}
	compileMonitoring(&rec, sw, pol.Monitoring)
	rec.LearnLimit = uint32(p.MACRoom())
	if p.MACShare > 0 {
		rec.Rules |= abi.RuleSharesMACs
	}
	rec.Ageing = uint64(pol.Learning.Ageing.V) * c.hz / uint64(time.Second)
	switch v := &pol.VLAN.V; v.Mode {
	case plan.VLANNone:
		rec.VLANMode = abi.VLANNone
	case plan.VLANAccess:
		rec.VLANMode, rec.Access = abi.VLANAccess, v.ID
	case plan.VLANTrunk:
		rec.VLANMode = abi.VLANTrunk
		rec.VLANSet = c.vlanSet(v.Set)
	}
	return rec, c.compileTeam(sw, p, f, &rec)
}

// linkControlRules allows the link control protocols of a list.
func linkControlRules(list []string) (rules uint32) {
	bits := map[string]uint32{spec.PassLACP: abi.RulePassLACP, spec.PassLLDP: abi.RulePassLLDP,
		spec.PassEAPOL: abi.RulePassEAPOL,
		spec.PassPTP:   abi.RulePassPTP, spec.PassCDP: abi.RulePassCDP, spec.PassBPDU: abi.RulePassBPDU}
	for _, name := range list {
		rules |= bits[name]
	}
	return rules
}

// compileUplinks compiles the uplinks. It returns as receivers the hosts behind uplinks that carry the host's own
// traffic.
func (c *compiler) compileUplinks(sw *plan.Switch, id uint8, flags uint32) (hosts []receiver) {
	for _, u := range sw.Uplinks {
		f, a, ok := c.connected(u.ID)
		if !ok {
			continue
		}
		rec := abi.Port{
			Ifindex: a.Ifindex, MAC: f.DeviceMAC, MTU: uint32(f.MTU), SwitchID: id, SwitchMTU: uint32(sw.MTU),
			VLANMode: abi.VLANTrunk, VLANSet: c.vlanSet(u.VLANs), Flags: abi.PortConnected | abi.PortUplink | flags,
		}
		compileMonitoring(&rec, sw, u.Monitoring)
		if f.Up {
			rec.Flags |= abi.PortUp
		}
		if u.Blocked {
			rec.Flags |= abi.PortBlocked
		}
		if g := sw.LAGOf(u.ID.Name); g != nil {
			rec.Uplink = c.lagChoice(sw, g)
		}
		slot := c.slots.Ports[u.ID]
		if u.ID.Name == spec.TunnelName {
			rec.MTU = anyMTU // the tunnel's own program knows what fits
			rec.Rules |= abi.RuleTunnel
		}
		key := owner{id, f.DeviceMAC}
		if by := slices.IndexFunc(c.owners, func(o owned) bool { return o.owner == key }); by < 0 &&
			!f.DeviceMAC.IsZero() {
			c.owners = append(c.owners, owned{key, slot})
		} else if by >= 0 && c.img.Ports[c.owners[by].slot].Flags&abi.PortUplink == 0 {
			f.HostTraffic = false // a host interface has taken over the device's MAC
		}
		if f.HostTraffic && f.Up && !u.Blocked && !f.DeviceMAC.IsZero() {
			rec.Flags |= abi.PortCarriesHost
			hosts = append(hosts, receiver{slot: uint16(slot), host: u})
		}
		c.put(slot, rec)
	}
	return hosts
}

// anyMTU is above the length of every packet.
const anyMTU = 1 << 16

// vlanSet returns the index of the set, which it adds if it is new. There is space for one set for every port, so the
// sets cannot run out; the same holds for teams.
func (c *compiler) vlanSet(s plan.VLANSet) uint16 {
	if i, ok := c.setIndex[s]; ok {
		return i
	}
	i := uint16(len(c.img.VLANSets))
	c.img.VLANSets = append(c.img.VLANSets, abi.VLANSet{Bits: s})
	c.setIndex[s] = i
	return i
}
