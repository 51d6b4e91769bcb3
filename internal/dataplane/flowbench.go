package dataplane

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"

	"heddle/internal/abi"
	"heddle/internal/flow"
)

// FlowBench is a set of flow tables in the kernel that Fill fills in place of frames, to measure the cost of draining
// them. They are sized as for a host with one CPU. It is a flow.Source, for one goroutine.
type FlowBench struct {
	*Flows
	maps    vswitchMaps
	periods *grace
	now     int64
}

// NewFlowBench makes tables for the given number of flows, which are all IPv4 or all others, observed at the points.
func NewFlowBench(flows int, ofIPv4 bool, points flow.Points) (*FlowBench, error) {
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, err
	}
	spec, err := loadVswitch()
	if err != nil {
		return nil, err
	}
	if err := sizeMeter(spec, 1, placesOf(1)); err != nil {
		return nil, err
	}
	b := &FlowBench{}
	if err := spec.LoadAndAssign(&b.maps, nil); err != nil {
		return nil, explainLoad(err)
	}
	clock := func() (func(uint32) int64, error) { return func(uint32) int64 { return b.now }, nil }
	b.periods = newGrace(&b.maps)
	if b.Flows, err = openFlows(&b.maps, placesOf(1), clock, b.periods.await); err != nil {
		return nil, errors.Join(err, b.maps.Close())
	}
	b.points, b.inTables = points, true
	b.demand[0][kindOf(ofIPv4)].size = 2 * flows // with free space, like tables that grew with the traffic
	b.limit = uint32(flows)
	if err := b.make(b.limit); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func kindOf(ofIPv4 bool) kind {
	if ofIPv4 {
		return ipv4
	}
	return other
}

// Close removes the tables from the kernel.
func (b *FlowBench) Close() error {
	return errors.Join(b.discard(), b.close(), b.periods.close(), b.maps.Close())
}

// Fill counts flows that are not in the tables yet, in the present round, at a time in milliseconds since 1970.
func (b *FlowBench) Fill(keys []flow.Key, counts []flow.Counts, now int64) error {
	b.now = now
	c, err := b.control()
	if err != nil {
		return err
	}
	values := make([]abi.Flow, len(counts))
	for i, c := range counts {
		values[i] = abi.Flow{Packets: c.Packets, Bytes: c.Bytes, FrameBytes: c.FrameBytes, In: c.In, Out: c.Out,
			TcpFlags: c.TCPFlags, Tos: c.TOS,
			MinTtl: c.MinTTL, MaxTtl: c.MaxTTL}
	}
	own := &b.tables[c.Round&1].own[0]
	if keys[0].EtherType == flow.IPv4 {
		return fillTable(own[ipv4].Map, keys, values, abiKeyOf)
	}
	return fillTable(own[other].Map, keys, values, abiWideKeyOf)
}

func fillTable[K any](m *ebpf.Map, keys []flow.Key, values []abi.Flow, of func(*flow.Key) K) error {
	all := make([]K, len(keys))
	for i := range keys {
		all[i] = of(&keys[i])
	}
	if n, err := m.BatchUpdate(all, values, nil); err != nil {
		return fmt.Errorf("count flow %d of %d: %w", n, len(keys), err)
	}
	return nil
}

// abiKeyOf returns the inverse of keyOf.
func abiKeyOf(k *flow.Key) abi.FlowKey {
	x := abi.FlowKey{Point: abiPointOf(k), VLAN: k.VLAN, MACs: macsOf(k), Protocol: k.Protocol}
	copy(x.Addresses[:4], k.Src[:4])
	copy(x.Addresses[4:], k.Dst[:4])
	binary.BigEndian.PutUint16(x.Ports[:], k.SrcPort)
	binary.BigEndian.PutUint16(x.Ports[2:], k.DstPort)
	return x
}

// abiWideKeyOf returns the inverse of wideKeyOf.
func abiWideKeyOf(k *flow.Key) abi.WideFlowKey {
	x := abi.WideFlowKey{Point: abiPointOf(k), VLAN: k.VLAN, MACs: macsOf(k), Type: k.EtherType, Protocol: k.Protocol}
	copy(x.Addresses[:16], k.Src[:])
	copy(x.Addresses[16:], k.Dst[:])
	binary.BigEndian.PutUint16(x.Ports[:], k.SrcPort)
	binary.BigEndian.PutUint16(x.Ports[2:], k.DstPort)
	return x
}

func abiPointOf(k *flow.Key) uint16 {
	if k.Direction == flow.Egress {
		return k.Point | abi.FlowEgress
	}
	return k.Point
}

func macsOf(k *flow.Key) (m [12]uint8) {
	copy(m[:6], k.DstMAC[:])
	copy(m[6:], k.SrcMAC[:])
	return m
}
