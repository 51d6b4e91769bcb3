package dataplane

import (
	"errors"
	"fmt"
	"math"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/dataplane/entries"
	"heddle/internal/observe"
	"heddle/internal/plan"
)

// Travel reads and writes what belongs to one port and travels with it when its guest moves to another host (S79).
// Its counters are read by a CounterReader.
type Travel interface {
	// MACs returns what reads the MACs that were learned at the port, in no order; nil where the port holds none. It
	// goes through the table, and may be called in parallel with the use of the Kernel, until that is closed. If
	// another port has got the port's slot meanwhile, it reads that port's MACs.
	MACs(id plan.PortID) (read func() ([]observe.MACEntry, error), err error)
	// Settled returns when no frame that was under way at the call is still under way: a port that had become silent by
	// then counts nothing more that its guest sent or got. It takes a grace period of the kernel, and any goroutine may
	// call it.
	Settled() error
	// Learn gives the port MACs, with the times since they were heard. It takes none that is known already, that
	// exceeds the port's limit or the table's room, or that is older than the port keeps MACs; none at all where the
	// port may learn none. It returns those that it took. They count as sent from here now: an announcement of one that
	// comes back by another uplink within a second is no sign that it lives elsewhere (S91, S92).
	Learn(id plan.PortID, list []observe.MACEntry) (taken []observe.MACEntry, err error)
	// Spent is what the port has used up of its storm control's allowance; nil for nothing.
	Spent(id plan.PortID) ([]observe.Spent, error)
	// Spend replaces what the port has used up. It is for a silent port: one that sends counts at the same time. known
	// is false for a port that is not in the plan.
	Spend(id plan.PortID, list []observe.Spent) (known bool, err error)
}

// Travel returns the traveller of the kernel's ports.
func (k *Kernel) Travel() Travel { return travel{k} }

type travel struct{ *Kernel }

// heldBy is how many MACs the slot holds.
func (k travel) heldBy(slot uint32) (held uint64, err error) {
	if err = k.objects.Held.Lookup(slot, &held); err != nil {
		return 0, fmt.Errorf("read how many MACs a port holds: %w", err)
	}
	return held, nil
}

func (k travel) MACs(id plan.PortID) (read func() ([]observe.MACEntry, error), err error) {
	slot, ok := k.slots.Ports[id]
	if !ok {
		return nil, nil
	}
	held, err := k.heldBy(slot)
	if err != nil || held == 0 {
		return nil, err
	}
	return func() ([]observe.MACEntry, error) { return k.learnedAt(id, slot, held) }, nil
}

// learnedAt reads the MACs of a slot, which holds so many.
func (k travel) learnedAt(id plan.PortID, slot uint32, held uint64) (list []observe.MACEntry, err error) {
	now, err := k.ticks()
	if err != nil {
		return nil, err
	}
	decode := k.slots.Decode()
	keys, values := make([]abi.MACKey, entries.Batch), make([]abi.Learned, entries.Batch)
	var cursor ebpf.MapBatchCursor
	for {
		n, err := k.objects.Macs.BatchLookup(&cursor, keys, values, nil)
		for i := range n {
			if values[i].Slot == slot {
				list = append(list, k.entry(id, &keys[i], &values[i], now, decode))
			}
		}
		if errors.Is(err, ebpf.ErrKeyNotExist) || err == nil && uint64(len(list)) >= held {
			return list, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the MACs learned at port %s: %w", id, err)
		}
	}
}

func (k travel) entry(id plan.PortID, key *abi.MACKey, value *abi.Learned, now uint64,
	decode func(uint32) (uint32, uint16, bool)) observe.MACEntry {
	e := observe.MACEntry{Switch: id.Switch, MAC: key.MAC, Port: id}
	e.VNI, e.VLAN, e.AD = decode(key.Segment)
	if now > value.Seen {
		e.Idle = float64(now-value.Seen) / float64(k.hz)
	}
	return e
}

func (k travel) Settled() error { return k.tables.grace.await() }

// recordOf is the port's record in the active plan.
func (k travel) recordOf(slot uint32) (p abi.Port, err error) {
	control, err := k.tables.inForce()
	if err != nil {
		return p, err
	}
	const size = int64(unsafe.Sizeof(abi.Port{}))
	list := make([]abi.Port, 1)
	err = readAt(k.objects.Ports, bytesOf(list), (int64(control.Generation&1)*abi.MaxPorts+int64(slot))*size)
	if err != nil {
		return p, fmt.Errorf("read a port of the active plan: %w", err)
	}
	return list[0], nil
}

func (k travel) Learn(id plan.PortID, list []observe.MACEntry) (taken []observe.MACEntry, err error) {
	slot, ok := k.slots.Ports[id]
	if !ok || len(list) == 0 {
		return nil, nil
	}
	p, err := k.recordOf(slot)
	if err != nil || p.Flags&abi.PortLearns == 0 || p.Flags&abi.PortForgedOk == 0 {
		return nil, err
	}
	now, err := k.ticks()
	if err != nil {
		return nil, err
	}
	decode := k.slots.Decode()
	here := (uint32(p.SwitchID)+1)<<abi.SegmentSwitchShift | uint32(p.Access)
	for i := range list {
		e := list[i]
		e.Switch, e.Port = id.Switch, id
		if vni, vlan, _ := decode(here); vni != 0 {
			e.VNI, e.VLAN, e.AD = vni, vlan, false // what came with the port says nothing of this host's VNI
		} else if t, is := k.overlays.trunks.written[slot]; is {
			e.VNI, e.AD = t.Vni, false
		}
		key, _, known := macKey(k.slots, &e)
		age := uint64(max(0, e.Idle) * float64(k.hz))
		if !known || age >= now || p.Ageing != 0 && age >= p.Ageing {
			continue
		}
		took, full, err := k.learn(key, abi.Learned{Seen: now - age, Sent: now + 1, Slot: slot}, uint64(p.LearnLimit))
		if err != nil || full {
			return taken, err
		}
		if took {
			taken = append(taken, e)
		}
	}
	return taken, nil
}

// learn makes one entry. The program may be learning at the same time: whatever it makes is newer, and stays.
func (k travel) learn(key abi.MACKey, e abi.Learned, limit uint64) (took, full bool, err error) {
	slot := e.Slot
	var have abi.Learned
	switch err := k.objects.Macs.Lookup(key, &have); {
	case err == nil:
		return false, false, nil
	case !errors.Is(err, ebpf.ErrKeyNotExist):
		return false, false, fmt.Errorf("look for a learned MAC: %w", err)
	}
	before, err := k.heldBy(slot)
	if err != nil || before >= limit {
		return false, true, err
	}
	in := abi.CarriedMAC{Key: key, Entry: e}
	if _, err := k.objects.HeddleCarry.Run(&ebpf.RunOptions{Context: bytesOf([]abi.CarriedMAC{in})}); err != nil {
		return false, false, fmt.Errorf("give a port a MAC: %w", err)
	}
	if err := k.objects.Macs.Lookup(key, &have); err != nil { // the table is full
		return false, true, nil
	}
	after, err := k.heldBy(slot)
	if err != nil || after <= limit {
		return err == nil && have.Slot == slot, false, err
	}
	_, err = forgetMAC(k.objects.HeddleForget, key, slot) // the guest has learned the last places meanwhile
	return false, true, err
}

func (k travel) Spent(id plan.PortID) (list []observe.Spent, err error) {
	slot, ok := k.slots.Ports[id]
	if !ok {
		return nil, nil
	}
	var b abi.StormBucket
	if err := k.objects.StormBuckets.Lookup(slot, &b); err != nil {
		return nil, fmt.Errorf("read the storm control of port %s: %w", id, err)
	}
	now, err := k.ticks()
	if err != nil {
		return nil, err
	}
	for class, word := range b.Word {
		ago := int32(uint32(now) - uint32(word>>32))
		if uint32(word) == 0 || ago < -int32(k.hz) { // the word's clock has gone round since
			continue
		}
		list = append(list, observe.Spent{Class: class,
			Billionths: int64(uint64(uint32(word)) * uint64(time.Second) / k.hz),
			Idle:       time.Duration(max(0, ago)) * time.Second / time.Duration(k.hz)})
	}
	return list, nil
}

// longestBurst is how long storm control takes at most to refill all that was used up.
const longestBurst = 2 * time.Second

func (k travel) Spend(id plan.PortID, list []observe.Spent) (known bool, err error) {
	slot, ok := k.slots.Ports[id]
	if !ok {
		return false, nil
	}
	now, err := k.ticks()
	if err != nil {
		return true, err
	}
	var b abi.StormBucket
	for _, s := range list {
		if s.Class < 0 || s.Class >= len(b.Word) || s.Billionths <= 0 || s.Idle > longestBurst {
			continue
		}
		last := uint32(now - uint64(max(0, s.Idle)*time.Duration(k.hz)/time.Second))
		frames, rest := uint64(s.Billionths)/uint64(time.Second), uint64(s.Billionths)%uint64(time.Second)
		spent := uint64(math.MaxUint32)
		if frames < math.MaxUint32/k.hz {
			// Rounded up, so that a frame that was spent stays spent.
			spent = frames*k.hz + (rest*k.hz+uint64(time.Second)-1)/uint64(time.Second)
		}
		b.Word[s.Class] = uint64(last)<<32 | min(spent, math.MaxUint32)
	}
	if err := k.objects.StormBuckets.Put(slot, b); err != nil {
		return true, fmt.Errorf("set the storm control of port %s: %w", id, err)
	}
	return true, nil
}
