package dataplane

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/dataplane/compile"
	"heddle/internal/observe"
	"heddle/internal/plan"
)

// MACs lists the learned MACs, sorted by switch, VLAN and address.
func (k *Kernel) MACs() ([]observe.MACEntry, error) {
	list, _, err := k.MACsAt()
	return list, err
}

// MACsAt is MACs with the instant up to which each has been idle for as long as it says, give or take a tick.
func (k *Kernel) MACsAt() (list []observe.MACEntry, at time.Time, err error) {
	now, err := k.ticks()
	at = time.Now()
	if err != nil {
		return nil, at, err
	}
	list, err = readMACs(&k.objects.vswitchMaps, k.slots, now, k.hz)
	return list, at, err
}

// ForgetMACs removes these learned MACs, which MACs has listed, and returns those that it removed. One that is gone or
// was learned at another port meanwhile is left out.
func (k *Kernel) ForgetMACs(list []observe.MACEntry) (removed []observe.MACEntry, err error) {
	for _, e := range list {
		key, slot, ok := macKey(k.slots, &e)
		if !ok {
			continue // its port or switch is gone
		}
		there, err := forgetMAC(k.objects.HeddleForget, key, slot)
		if err != nil {
			return removed, fmt.Errorf("forget the learned MAC %s: %w", e.MAC, err)
		}
		if there {
			removed = append(removed, e)
		}
	}
	return removed, nil
}

// forgetMAC removes one learned MAC, by the program that does. there is false if it has gone or moved meanwhile.
func forgetMAC(program *ebpf.Program, key abi.MACKey, slot uint32) (there bool, err error) {
	order := []abi.ForgottenMAC{{Key: key, Slot: slot}}
	answer := make([]abi.ForgottenMAC, 1)
	_, err = program.Run(&ebpf.RunOptions{Context: bytesOf(order), ContextOut: bytesOf(answer)})
	return answer[0].Removed != 0, err
}

// macKey returns the key and the port's slot of a learned MAC; false if its switch or port has none.
func macKey(s *compile.Slots, e *observe.MACEntry) (key abi.MACKey, slot uint32, ok bool) {
	segment, known := s.Encode(e.Switch, e.VNI, e.VLAN, e.AD)
	slot, ok = s.Ports[e.Port]
	return abi.MACKey{Segment: segment, MAC: e.MAC}, slot, known && ok
}

func readMACs(m *vswitchMaps, s *compile.Slots, now, hz uint64) ([]observe.MACEntry, error) {
	all, err := learnedMACs(m, s, now, hz)
	if err != nil {
		return nil, err
	}
	return inOrder(all), nil
}

func learnedMACs(m *vswitchMaps, s *compile.Slots, now, hz uint64) ([]observe.MACEntry, error) {
	ports := make(map[uint32]plan.PortID, len(s.Ports))
	for id, slot := range s.Ports {
		ports[slot] = id
	}
	var out []observe.MACEntry
	decode := s.Decode()
	keys, values := make([]abi.MACKey, 1024), make([]abi.Learned, 1024)
	var cursor ebpf.MapBatchCursor
	for {
		n, err := m.Macs.BatchLookup(&cursor, keys, values, nil)
		for i := range n {
			port, ok := ports[values[i].Slot]
			if !ok {
				continue // its port has just been removed; the next sweep removes the entry
			}
			e := observe.MACEntry{Switch: port.Switch, MAC: keys[i].MAC, Port: port}
			e.VNI, e.VLAN, e.AD = decode(keys[i].Segment)
			if now > values[i].Seen {
				e.Idle = float64(now-values[i].Seen) / float64(hz)
			}
			out = append(out, e)
		}
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read learned MACs: %w", err)
		}
	}
}

// inOrder sorts MACs by switch, VLAN and address.
func inOrder(out []observe.MACEntry) []observe.MACEntry {
	slices.SortFunc(out, func(a, b observe.MACEntry) int {
		return cmp.Or(cmp.Compare(a.Switch, b.Switch), cmp.Compare(a.VNI, b.VNI), cmp.Compare(a.VLAN, b.VLAN),
			bytes.Compare(a.MAC[:], b.MAC[:]))
	})
	return out
}
