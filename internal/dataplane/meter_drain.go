package dataplane

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/flow"
)

// drainPart is how many flows are passed to add at once, unless one bucket of a table has more.
const drainPart = 512

// tableBits of a batch's number distinguish the tables of a round.
const tableBits = 16

// Drain removes everything counted so far and passes it to add; see flow.Source. It takes a grace period of the kernel,
// some 20 ms, and ½ µs per flow.
func (f *Flows) Drain(add func(flow.Batch) error) error {
	f.draining.Lock()
	defer f.draining.Unlock()
	if f.tables[0] == nil || f.tables[1] == nil {
		return nil
	}
	f.mu.Lock()
	limit := f.limit
	if f.unsure {
		f.tables[0].open, f.tables[1].open, f.unsure = false, false, false
	}
	f.mu.Unlock()
	c, err := f.control()
	if err != nil {
		return err
	}
	if c.Drained+1 != c.Round { // add failed, or the process that began the round died
		if err := f.drainRound(&c, add); err != nil {
			return err
		}
	}
	c.Round++
	if err := errors.Join(f.setControl(c), f.step("flipped")); err != nil {
		return err
	}
	if err := f.drainRound(&c, add); err != nil {
		return err
	}
	return f.discardUnwanted(limit)
}

// discardUnwanted frees the tables if nothing was metered before the drain and nothing is now.
func (f *Flows) discardUnwanted(before uint32) error {
	f.mu.Lock()
	wanted := before > 0 || f.limit > 0
	f.made = wanted
	f.mu.Unlock()
	if wanted {
		return nil
	}
	return f.discard()
}

// drainRound drains the round before the present one.
func (f *Flows) drainRound(c *abi.MeterControl, add func(flow.Batch) error) error {
	if err := f.grace(); err != nil {
		return err
	}
	ms, err := f.clock()
	if err != nil {
		return err
	}
	round := c.Round - 1
	t := f.tables[round&1]
	r := &f.read
	d := &drain{ms: ms, add: add, step: f.step, read: r}
	spared, err := f.spared(t, round)
	if err != nil {
		return err
	}
	if err := t.readTables(d, round, spared); err != nil {
		return err
	}
	f.mu.Lock()
	limit := f.limit
	f.mu.Unlock()
	d.number = round<<tableBits | uint64(len(t.own))
	shared := 0
	if t.mayHaveSpilled(limit, spared) {
		if shared, err = drainTable(d, t.shared, &r.wideKeys, wideKeyOf); err != nil {
			return err
		}
		t.looked, t.empty = time.Now(), true
	}
	// Fast slots come last: a flow's counts in a table are older than those in a slot that it got later.
	most := 0
	for cpu := range t.places {
		d.number++
		taken, err := drainPlaces(d, &t.places[cpu], round)
		if err != nil {
			return err
		}
		most = max(most, taken+t.own[cpu][ipv4].used+t.own[cpu][other].used)
	}
	if err := errors.Join(t.settle(round), f.step("emptied")); err != nil {
		return err
	}
	if err := t.resize(f.demand, shared, limit); err != nil {
		return fmt.Errorf("make other tables for flows: %w", err)
	}
	if err := f.step("resized"); err != nil {
		return err
	}
	c.Drained = round
	if areOpen(c.Places[round&1]) {
		c.Places[round&1] = t.fit(most)
	}
	if err := f.setControl(*c); err != nil {
		return err
	}
	f.drained(round)
	return nil
}

// lookEvery is how often the table that all CPUs share is read although it should be empty. A reading visits all of its
// buckets, some megabytes: more than all flows of a short round.
const lookEvery = time.Second

// mayHaveSpilled reports whether the table that all CPUs share must be read: flows are counted there if a CPU's own
// table is full. The table must also be read before it is removed.
func (t *flowTables) mayHaveSpilled(limit uint32, spared []bool) bool {
	if t.empty && !slices.Contains(spared, false) {
		return false
	}
	t.empty = false // unless it is read now
	for cpu := range t.own {
		for k := range kinds {
			if t.own[cpu][k].full() > 0 {
				return true
			}
		}
	}
	return limit == 0 || t.shared.MaxEntries() != limit || time.Since(t.looked) >= lookEvery
}

// discard frees the tables when nothing is metered and nothing is in them.
func (f *Flows) discard() error {
	for set, t := range f.tables {
		if err := t.discard(); err != nil {
			return fmt.Errorf("free the tables for flows: %w", err)
		}
		f.tables[set] = nil
	}
	f.read = reading{}
	return nil
}

// drain is the destination of the flows of one table.
type drain struct {
	number uint64
	ms     func(uint32) int64
	add    func(flow.Batch) error
	step   func(string) error
	read   *reading
}

// reading is the memory that a drain reads into; the next drain reuses it, so that a drain makes no garbage.
type reading struct {
	keys     []abi.FlowKey
	wideKeys []abi.WideFlowKey
	values   []abi.Flow
	part     []abi.FlowPlace
	counted  []int // indexes in part of the flows that have counts
	spared   []bool
	batch    flow.Batch
}

// sized returns s with n elements of any content.
func sized[T any](s *[]T, n int) []T {
	if cap(*s) < n {
		*s = make([]T, n)
	}
	return (*s)[:n]
}

// drainTable adds every entry and removes it afterwards. It returns how many there were. A nil table has no entries.
func drainTable[K any](d *drain, m *ebpf.Map, read *[]K, key func(*K) flow.Key) (total int, err error) {
	if m == nil {
		return 0, nil
	}
	n := min(drainPart, int(m.MaxEntries()))
	keys, values := sized(read, n), sized(&d.read.values, n)
	var cursor ebpf.MapBatchCursor
	for {
		n, err := m.BatchLookup(&cursor, keys, values, nil)
		last := errors.Is(err, ebpf.ErrKeyNotExist)
		if err != nil && !last {
			return total, fmt.Errorf("read counted flows: %w", err)
		}
		if n > 0 {
			if err := d.add(d.batch(len(keys[:n]), func(i int) (flow.Key, *abi.Flow) {
				return key(&keys[i]), &values[i]
			})); err != nil {
				return total, err
			}
			if err := d.step("added"); err != nil {
				return total, err
			}
			if _, err := m.BatchDelete(keys[:n], nil); err != nil {
				return total, fmt.Errorf("remove drained flows: %w", err)
			}
			total += n
			if err := d.step("removed"); err != nil {
				return total, err
			}
		}
		if last {
			return total, nil
		}
	}
}

func (d *drain) batch(n int, entry func(int) (flow.Key, *abi.Flow)) flow.Batch {
	all := &d.read.batch
	b := flow.Batch{Number: d.number, Keys: sized(&all.Keys, n), Counts: sized(&all.Counts, n)}
	for i := range n {
		var v *abi.Flow
		b.Keys[i], v = entry(i)
		b.Counts[i] = flow.Counts{
			Packets: v.Packets, Bytes: v.Bytes, FrameBytes: v.FrameBytes, First: d.ms(v.First), Last: d.ms(v.Last),
			In: v.In, Out: v.Out,
			TCPFlags: v.TcpFlags, TOS: v.Tos, MinTTL: v.MinTtl, MaxTTL: v.MaxTtl,
		}
	}
	return b
}

// keyOf reads the key of an IPv4 flow.
func keyOf(k *abi.FlowKey) flow.Key {
	x := anyKey(flow.IPv4, k.Protocol, k.Point, k.VLAN, &k.MACs, &k.Ports)
	copy(x.Src[:], k.Addresses[:4])
	copy(x.Dst[:], k.Addresses[4:])
	return x
}

// wideKeyOf reads the key of any flow.
func wideKeyOf(k *abi.WideFlowKey) flow.Key {
	x := anyKey(k.Type, k.Protocol, k.Point, k.VLAN, &k.MACs, &k.Ports)
	copy(x.Src[:], k.Addresses[:16])
	copy(x.Dst[:], k.Addresses[16:])
	return x
}

// anyKey returns the common part of the two key types: everything except the addresses.
func anyKey(etherType uint16, protocol uint8, point, vlan uint16, macs *[12]uint8, ports *[4]uint8) flow.Key {
	x := flow.Key{EtherType: etherType, Protocol: protocol, Point: pointOf(point), Direction: directionOf(point),
		VLAN: vlan}
	copy(x.DstMAC[:], macs[:6])
	copy(x.SrcMAC[:], macs[6:])
	x.SrcPort, x.DstPort = binary.BigEndian.Uint16(ports[:]), binary.BigEndian.Uint16(ports[2:])
	return x
}

func pointOf(point uint16) uint16 { return point &^ abi.FlowEgress }

func directionOf(point uint16) flow.Direction {
	if point&abi.FlowEgress != 0 {
		return flow.Egress
	}
	return flow.Ingress
}
