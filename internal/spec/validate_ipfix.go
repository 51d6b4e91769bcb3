package spec

import (
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
)

// ipfixRules checks a switch's flow export.
type ipfixRules struct{ *validator }

// ipfix checks how the flows of switch i are timed, stored and exported.
func (v ipfixRules) ipfix(sw at, i int) {
	a, x := sw.field("ipfix"), &v.cfg.Switches[i].IPFIX
	v.collectors(a.field("collectors"), x)
	v.within(a, "observationDomainId", x.ObservationDomainID, 0, MaxObservationDomain, "an observation domain is 0–%d",
		MaxObservationDomain)
	v.switchIPAddress(a, x)
	v.duration(a, "activeFlowTimeout", x.ActiveFlowTimeout, MinActiveFlowTimeout, MaxActiveFlowTimeout, "60s")
	v.duration(a, "idleFlowTimeout", x.IdleFlowTimeout, MinIdleFlowTimeout, MaxIdleFlowTimeout, "15s")
	v.within(a, "samplingRate", x.SamplingRate, 0, MaxSamplingRate,
		"a sampling rate is 0–%d: how many packets are left out after each that is metered; 0 meters every packet",
		MaxSamplingRate)
	v.duration(a.field("templates"), "every", x.Templates.Every, MinTemplatesEvery, MaxTemplatesEvery, "60s")
	if n := x.Templates.Packets; n != nil {
		v.within(a.field("templates"), "packets", *n, 0, MaxTemplatePackets,
			"a number of messages is 1–%d, or 0 to send templates by time alone", MaxTemplatePackets)
	}
	if x.MaxFlows != 0 || v.written(a, "maxFlows") {
		v.within(a, "maxFlows", x.MaxFlows, MinMaxFlows, MaxMaxFlows, "a flow table holds %d–%d flows", MinMaxFlows,
			MaxMaxFlows)
	}
	if x.MTU != 0 || v.written(a, "mtu") {
		v.within(a, "mtu", x.MTU, MinMessageMTU, MaxMTU,
			"a message's packet has %d–%d bytes at most; leave it out to follow the path", MinMessageMTU, MaxMTU)
	}
}

// within checks that a number in a field at a is between least and most.
func (v *validator) within(a at, field string, n, least, most int, format string, args ...any) {
	if n < least || n > most {
		v.fault(a.field(field), strconv.Itoa(n), format, args...)
	}
}

func (v ipfixRules) collectors(a at, x *IPFIX) {
	if len(x.Collectors) > MaxCollectors {
		v.fault(a.item(MaxCollectors, ""), "", "a switch has at most %d collectors, these are %d", MaxCollectors,
			len(x.Collectors))
	}
	type target struct {
		address string
		port    int
		udp     bool
	}
	first := map[target]int{}
	for k := range x.Collectors {
		c, at := &x.Collectors[k], a.item(k, "")
		if c.Address == "" && !v.written(at, "address") {
			v.fault(at.field("address"), "", "an address is needed: that of the collector, such as 192.0.2.9 or "+
				"flows.example.net")
		} else if msg := checkCollectorAddress(c.Address); msg != "" {
			v.fault(at.field("address"), shown(c.Address), "%s", msg)
		}
		if c.Port != 0 || v.written(at, "port") {
			v.within(at, "port", c.Port, 1, 65535, "a collector's port is 1–65535; leave it out for %d",
				Collector{Transport: c.Transport}.ActualPort())
		}
		v.transport(at, c)
		enum(v.validator, at, "shape", c.Shape, ShapeStandard, ShapeVDS)
		t := target{sameAddress(c.Address), c.ActualPort(), c.ActualTransport() == TransportUDP}
		if other, dup := first[t]; dup && c.Address != "" {
			v.fault(at, "", "this collector is listed already%s: give each address and port once",
				v.line(a.item(other, "")))
			continue
		}
		first[t] = k
	}
}

// transport checks how messages get to a collector, and that fields for TLS are only used with it.
func (v ipfixRules) transport(a at, c *Collector) {
	enum(v.validator, a, "transport", c.Transport, TransportUDP, TransportTCP, TransportTLS)
	for _, f := range []struct{ field, value string }{{"ca", c.CA}, {"certificate", c.Certificate}, {"key", c.Key},
		{"serverName", c.ServerName}} {
		switch {
		case f.value == "" && !v.written(a, f.field):
		case c.Transport != TransportTLS:
			v.fault(a.field(f.field), "", "this is for transport: tls; this collector's transport is %s",
				c.ActualTransport())
		case f.field == "serverName":
			if checkCollectorAddress(f.value) != "" {
				v.fault(a.field(f.field), shown(f.value),
					"a server name is a host name or an address, as the collector's certificate has it")
			}
		case !filepath.IsAbs(f.value):
			v.fault(a.field(f.field), shown(f.value), "give the whole path of the file, such as /etc/heddle/%s.pem",
				f.field)
		}
	}
	switch {
	case c.Transport != TransportTLS:
	case c.Certificate != "" && c.Key == "":
		v.fault(a.field("certificate"), "", "a certificate needs its key: give the file as key")
	case c.Key != "" && c.Certificate == "":
		v.fault(a.field("key"), "", "a key needs its certificate: give the file as certificate")
	}
}

// sameAddress is one spelling of an address that can be written in several ways: an IPv6 address, or a host name.
func sameAddress(address string) string {
	if ip, err := netip.ParseAddr(address); err == nil {
		return ip.String()
	}
	return strings.TrimSuffix(strings.ToLower(address), ".")
}

// switchIPAddress checks the source address of messages, which cannot be used towards IPv6 collectors.
func (v ipfixRules) switchIPAddress(a at, x *IPFIX) {
	if x.SwitchIPAddress == "" && !v.written(a, "switchIpAddress") {
		return
	}
	ip, err := netip.ParseAddr(x.SwitchIPAddress)
	if err != nil || !ip.Is4() || ip.IsUnspecified() || ip.IsMulticast() || ip.As4() == [4]byte{255, 255, 255, 255} {
		v.fault(a.field("switchIpAddress"), shown(x.SwitchIPAddress),
			"an exporter's address is a unicast IPv4 address, such as 192.0.2.1")
	}
}

// monitoring checks a monitoring policy at a.
func (v *validator) monitoring(a at, m Monitoring) {
	enum(v, a, "observe", m.Observe, ObserveIngress, ObserveEgress, ObserveBoth)
}
