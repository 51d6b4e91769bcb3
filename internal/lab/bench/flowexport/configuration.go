package flowexport

import (
	"fmt"
	"net/netip"
	"strings"
)

// metering says which part of the traffic is metered.
type metering string

// The kinds of metering. Each frame between VMs of two hosts is metered once on each host.
const (
	off metering = "baseline"
	// again is another baseline instead of metering: the method cannot resolve differences as small as those
	// between baselines.
	again metering = "baseline-again"
	// uni meters what leaves the switch, at ports and at the uplink, and exports a record for each direction, as a VDS
	// does.
	uni metering = "ipfix"
	// bi meters both directions at the ports and exports one record per conversation (RFC 5103).
	bi metering = "ipfix-bi"
)

// meters reports whether anything is metered.
func (m metering) meters() bool { return m == uni || m == bi }

// configuration is a metering with or without flows in the background.
type configuration struct {
	metering   metering
	background bool
}

func (c configuration) name() string {
	if c.background {
		return string(c.metering) + "+5k"
	}
	return string(c.metering)
}

// metered4 are the article's configurations without the baseline.
func metered4() []configuration {
	return []configuration{{uni, false}, {bi, false}, {uni, true}, {bi, true}}
}

// selectable are all configurations that can be compared with a baseline, including another baseline.
func selectable() []configuration {
	return append(metered4(), configuration{again, false}, configuration{again, true})
}

// ConfigurationNames are the names of the configurations that can be chosen.
func ConfigurationNames() []string {
	var names []string
	for _, c := range selectable() {
		names = append(names, c.name())
	}
	return names
}

// side is one of the two hosts.
type side int

const (
	tx side = iota // the senders' host
	rx
)

// sides are both.
var sides = [...]side{tx, rx}

func (s side) host() string { return [...]string{"esx1", "esx2"}[s] }

// The VMs of a side are numbered from 1; number 0 is the background's.
func (s side) vm(n int) string         { return fmt.Sprintf("%c%d", "ab"[s], n) }
func (s side) device(n int) string     { return fmt.Sprintf("vm-%s", s.vm(n)) }
func (s side) mac(n int) string        { return fmt.Sprintf("02:4b:0f:00:%02x:%02x", int(s), n) }
func (s side) address(n, i int) string { return fmt.Sprintf("10.79.%d.%d", 100*int(s)+n, i+1) }

// cableDevice is a host's end of the cable to the other one.
const cableDevice = "eno1"

// With an overlay the cable leads into a switch of its own, whose port endpointPort has the host's outer address.
const (
	endpointPort = "tep0"
	overlayMTU   = 1600 // room for the outer headers
)

// endpoint is the host's outer address.
func (s side) endpoint() netip.Addr { return netip.AddrFrom4([4]byte{10, 80, 0, byte(s) + 1}) }

// serverAddresses is how many addresses each VM of the receivers has. Connections of crr go to each in turn: with one
// address, a connection could have the addresses and ports of an earlier one whose flow is not exported yet, and they
// would be one flow.
const serverAddresses = 16

// addresses are those of a VM.
func (s side) addresses(n int) []string {
	all := []string{s.address(n, 0) + "/16"}
	for i := 1; s == rx && i < serverAddresses; i++ {
		all = append(all, s.address(n, i)+"/16")
	}
	return all
}

// export is where flows go and how; off for nowhere. It stays when metering is switched off, because flows metered
// before must still be exported.
type export struct {
	as        metering
	collector uint16
}

func (e export) String() string {
	shape := "vds"
	if e.as == bi {
		shape = "standard"
	}
	return fmt.Sprintf("{biflow: %v, samplingRate: 0, collectors: [{address: 127.0.0.1, port: %d, shape: %s}]}",
		e.as == bi, e.collector, shape)
}

// hostConfig is the configuration of a host with this many VMs besides that of the background. With overlay they are in
// an overlay segment, whose tunnel takes the place of the uplink.
func hostConfig(s side, m metering, to export, vms int, overlay bool) string {
	var b strings.Builder
	b.WriteString("switches:\n")
	if overlay {
		fmt.Fprintf(&b, "  - {name: network, kind: distributed, mtu: %d, uplinks: [{name: uplink1, device: %s}], "+
			"portGroups: [{name: tunnels}]}\n", overlayMTU, cableDevice)
	}
	b.WriteString("  - name: lab\n    kind: distributed\n")
	if to.as != off {
		fmt.Fprintf(&b, "    ipfix: %s\n", to)
	}
	segment := "vlan: {access: 100}"
	if overlay {
		segment = "overlay: {vni: 5000}"
		fmt.Fprintf(&b, "    tunnel: {endpoints: [{hostPort: %s}], peers: [{address: %s}]%s}\n",
			endpointPort, (1 - s).endpoint(), m.atUplink())
	} else {
		fmt.Fprintf(&b, "    uplinks: [{name: uplink1, device: %s%s}]\n", cableDevice, m.atUplink())
	}
	fmt.Fprintf(&b, "    portGroups: [{name: vms, %s%s}]\nports:\n", segment, m.atPorts())
	if overlay {
		fmt.Fprintf(&b, "  - {name: %s, role: host, switch: network, portGroup: tunnels, addresses: [%s/24]}\n",
			endpointPort, s.endpoint())
	}
	for n := range vms + 1 {
		fmt.Fprintf(&b, "  - {name: %s, switch: lab, portGroup: vms, device: %s, mac: %q}\n", s.vm(n), s.device(n),
			s.mac(n))
	}
	return b.String()
}

func (m metering) atUplink() string {
	if m == uni {
		return ", monitoring: {ipfix: true, observe: egress}"
	}
	return ""
}

func (m metering) atPorts() string {
	switch m {
	case uni:
		return ", monitoring: {ipfix: true, observe: egress}"
	case bi:
		return ", monitoring: {ipfix: true, observe: both}"
	}
	return ""
}

// scenarioText is the lab: two hosts connected by a cable, with a VM for each adapter on both, the first of them for
// the background. VMs under QEMU are no part of it: they are started once the hosts run.
func scenarioText(adapters []adapter, overlay bool) string {
	var b strings.Builder
	b.WriteString("name: flow-export\ntitle: two hosts whose VMs exchange traffic\nhosts:\n")
	for _, s := range sides {
		fmt.Fprintf(&b, "  - name: %s\n    config:\n", s.host())
		for line := range strings.Lines(hostConfig(s, off, export{as: off}, len(adapters)-1, overlay)) {
			b.WriteString("      " + line)
		}
	}
	b.WriteString("vms:\n")
	for _, s := range sides {
		for n, a := range adapters {
			queues := ""
			if a.queues > 0 {
				queues = fmt.Sprintf(", queues: %d", a.queues)
			}
			if !a.emulated() {
				fmt.Fprintf(&b, "  - {name: %s, host: %s, addresses: [%s]%s}\n", s.vm(n), s.host(),
					strings.Join(s.addresses(n), ", "), queues)
			}
		}
	}
	mtu := ""
	if overlay {
		mtu = fmt.Sprintf(", mtu: %d", overlayMTU)
	}
	fmt.Fprintf(&b, "links:\n  - {a: %s/%s, b: %s/%s%s}\n", tx.host(), cableDevice, rx.host(), cableDevice, mtu)
	return b.String()
}
