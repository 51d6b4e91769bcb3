package dataplane

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/dataplane/compile"
	"heddle/internal/observe"
	"heddle/internal/plan"
)

// MACs lists the learned MACs, sorted by switch, VLAN and address.
func (k *Kernel) MACs() ([]observe.MACEntry, error) {
	now, err := k.ticks()
	if err != nil {
		return nil, err
	}
	return readMACs(&k.objects.vswitchMaps, k.slots, now, k.hz)
}

// ForgetMACs removes the learned MACs that which chooses, most of them at most, and returns those that it removed,
// sorted. One that is learned again meanwhile, at another port, stays.
func (k *Kernel) ForgetMACs(which func(observe.MACEntry) bool, most int) (removed []observe.MACEntry, err error) {
	now, err := k.ticks()
	if err != nil {
		return nil, err
	}
	all, err := learnedMACs(&k.objects.vswitchMaps, k.slots, now, k.hz)
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		if len(removed) == most {
			break
		}
		if !which(l.entry) {
			continue
		}
		there, err := k.forget(l)
		if err != nil {
			return inOrder(removed), err
		}
		if there {
			removed = append(removed, l.entry)
		}
	}
	return inOrder(removed), nil
}

// forget removes one learned MAC. there is false when it has gone or moved meanwhile.
func (k *Kernel) forget(l learnedMAC) (there bool, err error) {
	order := []abi.ForgottenMAC{{Key: l.key, Slot: l.slot}}
	answer := make([]abi.ForgottenMAC, 1)
	_, err = k.objects.HeddleForget.Run(&ebpf.RunOptions{Context: bytesOf(order), ContextOut: bytesOf(answer)})
	if err != nil {
		return false, fmt.Errorf("forget the learned MAC %s: %w", l.entry.MAC, err)
	}
	return answer[0].Removed != 0, nil
}

func readMACs(m *vswitchMaps, s *compile.Slots, now, hz uint64) ([]observe.MACEntry, error) {
	all, err := learnedMACs(m, s, now, hz)
	if err != nil {
		return nil, err
	}
	var out []observe.MACEntry
	for _, l := range all {
		out = append(out, l.entry)
	}
	return inOrder(out), nil
}

// learnedMAC is a learned MAC as it is in the table, and as it is shown.
type learnedMAC struct {
	key   abi.MACKey
	slot  uint32
	entry observe.MACEntry
}

func learnedMACs(m *vswitchMaps, s *compile.Slots, now, hz uint64) ([]learnedMAC, error) {
	ports := make(map[uint32]plan.PortID, len(s.Ports))
	for id, slot := range s.Ports {
		ports[slot] = id
	}
	var out []learnedMAC
	keys, values := make([]abi.MACKey, 1024), make([]abi.Learned, 1024)
	var cursor ebpf.MapBatchCursor
	for {
		n, err := m.Macs.BatchLookup(&cursor, keys, values, nil)
		for i := range n {
			port, ok := ports[values[i].Slot]
			if !ok {
				continue // its port has just been removed; the next sweep removes the entry
			}
			e := observe.MACEntry{
				Switch: port.Switch, MAC: keys[i].MAC, Port: port,
				VLAN: uint16(keys[i].Segment & abi.VIDMask), AD: keys[i].Segment&abi.SegmentAD != 0,
			}
			if now > values[i].Seen {
				e.Idle = float64(now-values[i].Seen) / float64(hz)
			}
			out = append(out, learnedMAC{keys[i], values[i].Slot, e})
		}
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read learned MACs: %w", err)
		}
	}
}

// inOrder orders MACs by switch, VLAN and address.
func inOrder(out []observe.MACEntry) []observe.MACEntry {
	slices.SortFunc(out, func(a, b observe.MACEntry) int {
		return cmp.Or(cmp.Compare(a.Switch, b.Switch), cmp.Compare(a.VLAN, b.VLAN), bytes.Compare(a.MAC[:], b.MAC[:]))
	})
	return out
}
