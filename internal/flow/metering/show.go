package metering

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"heddle/internal/api"
	"heddle/internal/flow"
	"heddle/internal/plan"
)

// words shows flows in the user's words.
type words struct {
	protocols  map[uint8]string
	etherTypes map[uint16]string
	locator    flow.Locator
}

func newWords(l flow.Locator) words { return words{protocolNames(), etherTypeNames(), l} }

// flow is the flow with that key at that point, with its counts.
func (w words) flow(at flow.Point, points flow.Points, k *flow.Key, c *flow.Counts) api.Flow {
	f := api.Flow{
		Switch: at.ID.Switch, Port: at.ID.Name, Uplink: at.Uplink, PortGroup: at.PortGroup,
		Direction: directionName(k.Direction), VLAN: segmentAt(at, k.VLAN).shown(),
		Protocol: w.protocol(k), SourceMAC: k.SrcMAC, DestinationMAC: k.DstMAC, FlowCounts: counts(c),
		First: time.UnixMilli(c.First), Last: time.UnixMilli(c.Last), In: points[c.In].ID.Name,
		Out:      points[c.Out].ID.Name,
		TCPFlags: tcpFlags(c.TCPFlags), TOS: c.TOS, MinTTL: c.MinTTL, MaxTTL: c.MaxTTL,
	}
	if f.Port == "" {
		f.Port = "slot " + strconv.Itoa(int(k.Point)) // for a port that is not known any more
	}
	f.Source, f.Destination = k.Addresses()
	f.Tunnel = w.tunnel(points, k, c)
	switch {
	case hasPorts(k):
		f.SourcePort, f.DestinationPort = k.SrcPort, k.DstPort
	case isICMP(k):
		f.ICMP = &api.ICMPMessage{Type: uint8(k.DstPort >> 8), Code: uint8(k.DstPort)}
	}
	return f
}

// tunnel is how a flow crosses between hosts, nil for one that does not, or of whose endpoints nothing is known.
func (w words) tunnel(points flow.Points, k *flow.Key, c *flow.Counts) *api.FlowTunnel {
	way, ok := flow.CrossingOf(points, k, c.In, c.Out)
	if !ok {
		return nil
	}
	ends, ok := w.locator.Locate(way)
	if !ok {
		return nil
	}
	return &api.FlowTunnel{Local: ends.Local, Remote: ends.Remote}
}

func isICMP(k *flow.Key) bool {
	return k.EtherType == flow.IPv4 && k.Protocol == protoICMP || k.EtherType == flow.IPv6 && k.Protocol == protoICMPv6
}

func counts(c *flow.Counts) api.FlowCounts {
	return api.FlowCounts{Packets: c.Packets, Bytes: c.Bytes, FrameBytes: c.FrameBytes}
}

// record is a flow record.
func (w words) record(points flow.Points, r *flow.Record) api.FlowRecord {
	out := api.FlowRecord{Flow: w.flow(points[r.Key.Point], points, &r.Key, &r.Delta), Reason: reasonName(r.Reason),
		Start: time.UnixMilli(r.Start), Total: counts(&r.Total)}
	if b := r.Reverse; b != nil {
		out.Reverse = &api.FlowReverse{FlowCounts: counts(&b.Delta), Start: time.UnixMilli(b.Start),
			Total: counts(&b.Total)}
	}
	return out
}

func (w words) protocol(k *flow.Key) string {
	if isIP(k) {
		if name, ok := w.protocols[k.Protocol]; ok {
			return name
		}
		return strconv.Itoa(int(k.Protocol))
	}
	if name, ok := w.etherTypes[k.EtherType]; ok {
		return name
	}
	if isLength(k.EtherType) {
		return llc
	}
	return fmt.Sprintf("0x%04x", k.EtherType)
}

func directionName(d flow.Direction) string {
	if d == flow.Egress {
		return "egress"
	}
	return "ingress"
}

// segment is where the frames of a flow are: a VLAN as a Key has it, inside a VNI unless that is 0.
type segment struct {
	vni  uint32
	vlan uint16
}

// segmentAt returns the segment of a Key's VLAN at a point.
func segmentAt(at flow.Point, vlan uint16) segment {
	if s, ok := at.Overlay.Segment(vlan); ok {
		return segment{s.VNI, s.VLAN}
	}
	return segment{vlan: vlan}
}

func (s segment) shown() plan.Segment {
	return plan.SegmentOf(s.vlan&^flow.AD, s.vlan&flow.AD != 0).In(s.vni)
}

func (s segment) compare(o segment) int {
	return cmp.Or(cmp.Compare(s.vni, o.vni), cmp.Compare(s.vlan, o.vlan))
}

// tcpFlags names the flags of element 6, the lowest bit first (RFC 9293 section 3.1).
func tcpFlags(flags uint16) (set []api.TCPFlag) {
	for i, flag := range [...]api.TCPFlag{api.TCPFin, api.TCPSyn, api.TCPRst, api.TCPPsh, api.TCPAck, api.TCPUrg,
		api.TCPEce, api.TCPCwr, api.TCPAe} {
		if flags&(1<<i) != 0 {
			set = append(set, flag)
		}
	}
	return set
}

func reasonName(r flow.EndReason) string {
	switch r {
	case flow.IdleTimeout:
		return "idle"
	case flow.ActiveTimeout:
		return "active"
	case flow.EndOfFlow:
		return "end"
	case flow.ForcedEnd:
		return "forced"
	case flow.NoResources:
		return "no-resources"
	}
	return strconv.Itoa(int(r))
}
