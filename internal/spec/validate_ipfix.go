package spec

import (
	"net/netip"
	"strconv"
	"strings"
)

// ipfix checks how the flows of switch i are timed, kept and exported.
func (v *validator) ipfix(sw at, i int) {
	a, x := sw.field("ipfix"), &v.cfg.Switches[i].IPFIX
	v.collectors(a.field("collectors"), x)
	v.within(a, "observationDomainId", x.ObservationDomainID, 0, MaxObservationDomain, "an observation domain is 0–%d", MaxObservationDomain)
	v.switchIPAddress(a, x)
	v.duration(a, "activeFlowTimeout", x.ActiveFlowTimeout, MinActiveFlowTimeout, MaxActiveFlowTimeout, "60s")
	v.duration(a, "idleFlowTimeout", x.IdleFlowTimeout, MinIdleFlowTimeout, MaxIdleFlowTimeout, "15s")
	v.within(a, "samplingRate", x.SamplingRate, 0, MaxSamplingRate,
		"a sampling rate is 0–%d: how many packets are left out after each that is metered; 0 meters every packet", MaxSamplingRate)
	v.duration(a.field("templates"), "every", x.Templates.Every, MinTemplatesEvery, MaxTemplatesEvery, "60s")
	if n := x.Templates.Packets; n != nil {
		v.within(a.field("templates"), "packets", *n, 0, MaxTemplatePackets, "a number of messages is 1–%d, or 0 to send templates by time alone", MaxTemplatePackets)
	}
	if x.MaxFlows != 0 || v.written(a, "maxFlows") {
		v.within(a, "maxFlows", x.MaxFlows, MinMaxFlows, MaxMaxFlows, "a flow table holds %d–%d flows", MinMaxFlows, MaxMaxFlows)
	}
	if x.MTU != 0 || v.written(a, "mtu") {
		v.within(a, "mtu", x.MTU, MinMessageMTU, MaxMTU, "a message's packet has %d–%d bytes at most; leave it out to follow the path", MinMessageMTU, MaxMTU)
	}
}

// within checks that a number of a field at a is least–most.
func (v *validator) within(a at, field string, n, least, most int, format string, args ...any) {
	if n < least || n > most {
		v.fault(a.field(field), strconv.Itoa(n), format, args...)
	}
}

func (v *validator) collectors(a at, x *IPFIX) {
	if len(x.Collectors) > MaxCollectors {
		v.fault(a.item(MaxCollectors, ""), "", "a switch has at most %d collectors, these are %d", MaxCollectors, len(x.Collectors))
	}
	type target struct {
		address string
		port    int
	}
	first := map[target]int{}
	for k := range x.Collectors {
		c, at := &x.Collectors[k], a.item(k, "")
		if c.Address == "" && !v.written(at, "address") {
			v.fault(at.field("address"), "", "an address is needed: that of the collector, such as 192.0.2.9 or flows.example.net")
		} else if msg := checkCollectorAddress(c.Address); msg != "" {
			v.fault(at.field("address"), shown(c.Address), "%s", msg)
		}
		if c.Port != 0 || v.written(at, "port") {
			v.within(at, "port", c.Port, 1, 65535, "a collector's UDP port is 1–65535; leave it out for %d", DefaultCollectorPort)
		}
		enum(v, at, "shape", c.Shape, ShapeStandard, ShapeVDS)
		t := target{sameAddress(c.Address), c.ActualPort()}
		if other, dup := first[t]; dup && c.Address != "" {
			v.fault(at, "", "this collector is listed already%s: give each address and port once", v.line(a.item(other, "")))
			continue
		}
		first[t] = k
	}
}

// sameAddress is one spelling of what can be written in several: an IPv6 address, and a host name.
func sameAddress(address string) string {
	if ip, err := netip.ParseAddr(address); err == nil {
		return ip.String()
	}
	return strings.TrimSuffix(strings.ToLower(address), ".")
}

// switchIPAddress checks the source address of messages, which no IPv6 collector can be sent from.
func (v *validator) switchIPAddress(a at, x *IPFIX) {
	if x.SwitchIPAddress == "" && !v.written(a, "switchIpAddress") {
		return
	}
	ip, err := netip.ParseAddr(x.SwitchIPAddress)
	if err != nil || !ip.Is4() || ip.IsUnspecified() || ip.IsMulticast() || ip.As4() == [4]byte{255, 255, 255, 255} {
		v.fault(a.field("switchIpAddress"), shown(x.SwitchIPAddress), "an exporter's address is a unicast IPv4 address, such as 192.0.2.1")
	}
}

// monitoring checks a monitoring policy at a.
func (v *validator) monitoring(a at, m Monitoring) {
	enum(v, a, "observe", m.Observe, ObserveIngress, ObserveEgress, ObserveBoth)
}
