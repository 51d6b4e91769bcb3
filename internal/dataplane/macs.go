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

func readMACs(m *vswitchMaps, s *compile.Slots, now, hz uint64) ([]observe.MACEntry, error) {
	ports := make(map[uint32]plan.PortID, len(s.Ports))
	for id, slot := range s.Ports {
		ports[slot] = id
	}
	var out []observe.MACEntry
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
			out = append(out, e)
		}
		if err != nil {
			if errors.Is(err, ebpf.ErrKeyNotExist) {
				break
			}
			return nil, fmt.Errorf("read learned MACs: %w", err)
		}
	}
	slices.SortFunc(out, func(a, b observe.MACEntry) int {
		return cmp.Or(cmp.Compare(a.Switch, b.Switch), cmp.Compare(a.VLAN, b.VLAN), bytes.Compare(a.MAC[:], b.MAC[:]))
	})
	return out, nil
}
