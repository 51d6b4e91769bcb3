package vsphere

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"heddle/internal/spec"
)

// translated is a switch on its way.
type translated struct {
	about
	inv  *Inventory
	from *object
	to   spec.Switch
	// uplinks are names of uplinks and LAGs, which share one namespace.
	uplinks *names
	groups  map[string]string // names of port groups by their keys
	// noVLAN says that the switch's own VLAN could not be kept.
	noVLAN bool
}

// largestMTU and smallestMTU bound a switch's MTU, in bytes.
const (
	smallestMTU = 1280
	largestMTU  = 9000
)

func (s *translated) renamed(a about, from, to string) {
	if from != to {
		a.note(Renamed, "name", from, "the name is "+to+": names have letters, digits, . _ - / : and spaces, at most "+
			"63 bytes")
	}
}

// all translates everything of the switch but its hosts.
func (s *translated) all() {
	c := &s.from.Config
	s.uplinks, s.groups = newNames(false), map[string]string{}
	s.to.Kind = spec.Distributed
	s.mtu(c.MaxMTU)
	for _, name := range c.UplinkPortPolicy.UplinkPortName {
		to := s.uplinks.add(name)
		s.renamed(s.part("uplink", name), name, to)
		s.to.Uplinks = append(s.to.Uplinks, spec.Uplink{Name: to})
	}
	for i := range c.LacpGroupConfig {
		s.lag(&c.LacpGroupConfig[i])
	}
	s.discovery(c.LinkDiscoveryProtocolConfig)
	s.ipfix(c.IpfixConfig, c.SwitchIPAddress)
	s.others(c)
	if c.DefaultPortConfig != nil {
		t := settings{switchOf: s, about: s.about, from: c.DefaultPortConfig, top: true}
		t.all(&s.to.Defaults)
	}
	groups := s.inv.groupsOf(s.from)
	sortObjects(groups)
	called := newNames(false)
	for _, g := range groups {
		if g.Config.Uplink || slices.ContainsFunc(c.UplinkPortgroup, func(r ref) bool {
			return r.Value == g.Self.Value
		}) {
			s.uplinkGroup(g)
			continue
		}
		s.group(g, called)
	}
}

func (s *translated) mtu(mtu int) {
	s.to.MTU = mtu
	if mtu == 0 {
		return
	}
	if within := min(max(mtu, smallestMTU), largestMTU); within != mtu {
		s.to.MTU = within
		s.changed("MTU", fmt.Sprint(mtu), fmt.Sprintf("the MTU is %d: Heddle's switches have %d to %d bytes", within,
			smallestMTU, largestMTU))
	}
}

func (s *translated) discovery(d *discovery) {
	if d == nil {
		return
	}
	operation := spec.LLDPMode(d.Operation)
	if !slices.Contains([]spec.LLDPMode{spec.LLDPNone, spec.LLDPListen, spec.LLDPAdvertise, spec.LLDPBoth}, operation) {
		if d.Operation != "" {
			s.absent("discovery protocol", d.Protocol+" "+d.Operation, "LLDP listens, as by default")
		}
		return
	}
	s.to.Discovery.LLDP = operation
	if d.Protocol != "lldp" && (operation == spec.LLDPAdvertise || operation == spec.LLDPBoth) {
		s.changed("discovery protocol", d.Protocol+" "+d.Operation, "LLDP advertises: Heddle hears CDP, and never "+
			"sends it. Switch LLDP on at the physical switch to see this host there")
	}
}

// between is n within bounds, and notes where it was not.
func (s *translated) between(setting string, n, least, most int, unit string) int {
	got := min(max(n, least), most)
	if got != n {
		s.changed(setting, fmt.Sprintf("%d%s", n, unit), fmt.Sprintf("it is %d%s: the range is %d to %d", got, unit,
			least, most))
	}
	return got
}

func (s *translated) ipfix(f *ipfix, address string) {
	if f == nil {
		return
	}
	to := &s.to.IPFIX
	if f.CollectorIPAddress != "" {
		_, err := netip.ParseAddr(f.CollectorIPAddress)
		if err != nil || f.CollectorPort < 1 || f.CollectorPort > 65535 {
			s.absent("NetFlow collector", fmt.Sprintf("%s port %d", f.CollectorIPAddress, f.CollectorPort),
				"this is no address and port of a collector: add it to ipfix.collectors")
		} else {
			to.Collectors = []spec.Collector{{Address: f.CollectorIPAddress, Port: f.CollectorPort,
				Shape: spec.ShapeVDS}}
		}
	}
	to.ObservationDomainID = s.between("NetFlow observation domain", f.ObservationDomainID, 0,
		spec.MaxObservationDomain, "")
	seconds := func(setting string, n int, least, most time.Duration) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprintf("%ds", s.between(setting, n, int(least/time.Second), int(most/time.Second), "s"))
	}
	to.ActiveFlowTimeout = seconds("NetFlow active flow timeout", f.ActiveFlowTimeout, spec.MinActiveFlowTimeout,
		spec.MaxActiveFlowTimeout)
	to.IdleFlowTimeout = seconds("NetFlow idle flow timeout", f.IdleFlowTimeout, spec.MinIdleFlowTimeout,
		spec.MaxIdleFlowTimeout)
	to.SamplingRate = s.between("NetFlow sampling rate", f.SamplingRate, 0, spec.MaxSamplingRate, "")
	to.InternalFlowsOnly = f.InternalFlowsOnly
	if address == "" {
		return
	}
	if a, err := netip.ParseAddr(address); err == nil && a.Is4() {
		to.SwitchIPAddress = address
	} else {
		s.absent("switch IP address", address, "messages have the host's address: Heddle takes an IPv4 address here")
	}
}

// others notes settings of the switch that have no counterpart.
func (s *translated) others(c *config) {
	if c.Contact.Name != "" || c.Contact.Contact != "" {
		s.absent("administrator contact", strings.TrimSpace(c.Contact.Name+" "+c.Contact.Contact),
			"keep it as a comment in your own file")
	}
	if c.NumStandalonePorts > 0 {
		s.absent("standalone ports", fmt.Sprint(c.NumStandalonePorts), "every port is of a port group: make one for "+
			"them")
	}
	if c.Description != "" {
		s.absent("description", c.Description, "keep it as a comment in your own file")
	}
	if c.NetworkResourceManagement {
		s.absent("Network I/O Control", shares(c.InfrastructureTraffic), "queues of the physical switch, or of the "+
			"host's cards (tc), have to do it. Storm control bounds floods")
	}
	for _, v := range c.VspanSession {
		s.absent("port mirroring", v.Name, "look at the frames with heddle capture")
	}
	for _, p := range c.PvlanConfig {
		s.absent("private VLAN", fmt.Sprintf("%s %d of %d", p.PvlanType, p.SecondaryVlanID, p.PrimaryVlanID),
			"port groups that use it are blocked: see there")
	}
	if slices.ContainsFunc(c.HealthCheckConfig, func(h healthCheck) bool { return h.Enable }) {
		s.changed("health check", "enabled", "heddle advise looks for the same faults, and sends nothing")
	}
	if m := c.MulticastFilteringMode; m != "" && m != "legacyFiltering" {
		s.absent("multicast filtering mode", m, "multicast goes to all ports of the VLAN")
	}
	if id := c.NetworkOffloadSpecID; id != "" && !strings.EqualFold(id, "none") {
		s.absent("network offloads", id, "frames are switched by the host's kernel")
	}
}

func shares(all []trafficShares) string {
	var words []string
	for _, t := range all {
		text, a := t.Key, t.AllocationInfo
		if a.Shares != nil {
			text += fmt.Sprintf(" %d shares", a.Shares.Shares)
		}
		if a.Limit != nil && *a.Limit >= 0 {
			text += fmt.Sprintf(", at most %d Mbit/s", *a.Limit)
		}
		if a.Reservation != nil && *a.Reservation > 0 {
			text += fmt.Sprintf(", %d Mbit/s reserved", *a.Reservation)
		}
		words = append(words, text)
	}
	if len(words) == 0 {
		return "enabled"
	}
	return strings.Join(words, "; ")
}
