package dataplane

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
)

// planTables are the memory-mapped tables that exist in two halves.
type planTables struct {
	control  *ebpf.Map
	ports    *ebpf.Memory
	vlanSets *ebpf.Memory
	teams    *ebpf.Memory
	segments *ebpf.Memory
	groups   *ebpf.Memory
	members  *ebpf.Memory
	owners   *ebpf.Map
	grace    *ebpf.Map
	// written remembers what each half of owners holds, the only plan table that is a hash.
	written [2]map[abi.OwnerKey]uint32
}

func openPlanTables(m *vswitchMaps) (*planTables, error) {
	t := &planTables{control: m.Control, owners: m.Owners, grace: m.Grace}
	for _, e := range []struct {
		to   **ebpf.Memory
		from *ebpf.Map
	}{
		{&t.ports, m.Ports}, {&t.vlanSets, m.VlanSets}, {&t.teams, m.Teams},
		{&t.segments, m.Segments}, {&t.groups, m.Groups}, {&t.members, m.Members},
	} {
		mem, err := e.from.Memory()
		if err != nil {
			return nil, fmt.Errorf("map table %s: %w", e.from, err)
		}
		*e.to = mem
	}
	t.written = [2]map[abi.OwnerKey]uint32{{}, {}}
	var key abi.OwnerKey
	var slot uint32
	it := t.owners.Iterate()
	for it.Next(&key, &slot) {
		half := key.Half & 1
		key.Half = 0
		t.written[half][key] = slot
	}
	return t, it.Err()
}

func (t *planTables) generation() (uint32, error) {
	var c abi.Control
	if err := t.control.Lookup(uint32(0), &c); err != nil {
		return 0, fmt.Errorf("read generation: %w", err)
	}
	return c.Generation, nil
}

// write fills the idle half with the image and returns the generation that would put it in force.
func (t *planTables) write(img *image) (uint32, error) {
	g, err := t.generation()
	if err != nil {
		return 0, err
	}
	next := g + 1
	half := int64(next & 1)
	if err := errors.Join(
		put(t.ports, img.ports, half*abi.MaxPorts),
		put(t.vlanSets, img.vlanSets, half*abi.MaxVLANSets),
		put(t.teams, img.teams, half*abi.MaxTeams),
		put(t.groups, img.groups, half*abi.MaxGroups),
		put(t.members, img.members, half*abi.MaxMemberChunks),
		t.writeOwners(uint8(half), img.owners),
	); err != nil {
		return 0, err
	}
	const perSwitch = abi.SegmentsPerSwitch / abi.Chunk
	for id, chunks := range img.segments {
		if err := put(t.segments, chunks, half*abi.MaxSwitches*perSwitch+int64(id)*perSwitch); err != nil {
			return 0, err
		}
	}
	return next, nil
}

func (t *planTables) writeOwners(half uint8, want map[abi.OwnerKey]uint32) error {
	has := t.written[half]
	for key := range has {
		if _, ok := want[key]; ok {
			continue
		}
		stale := key
		stale.Half = half
		if err := t.owners.Delete(&stale); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("remove MAC %v: %w", key.MAC, err)
		}
		delete(has, key)
	}
	for key, slot := range want {
		if old, ok := has[key]; ok && old == slot {
			continue
		}
		fresh := key
		fresh.Half = half
		if err := t.owners.Put(&fresh, slot); err != nil {
			return fmt.Errorf("write MAC %v: %w", key.MAC, err)
		}
		has[key] = slot
	}
	return nil
}

// flip puts the half of the generation in force, for all ports at one instant. It is a system call so that what was written
// through the memory maps before it is seen before it, on every architecture.
func (t *planTables) flip(generation uint32) error {
	if err := t.control.Put(uint32(0), &abi.Control{Generation: generation}); err != nil {
		return fmt.Errorf("put generation %d in force: %w", generation, err)
	}
	return nil
}

// awaitGrace returns when no run of the program that began before the call is still under way (K9).
func (t *planTables) awaitGrace() error {
	inner, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		return fmt.Errorf("await grace period: %w", err)
	}
	defer inner.Close()
	if err := t.grace.Put(uint32(0), inner); err != nil {
		return fmt.Errorf("await grace period: %w", err)
	}
	return nil
}

// put writes records at an index of a table.
func put[T any](m *ebpf.Memory, records []T, index int64) error {
	if len(records) == 0 {
		return nil
	}
	size := int64(unsafe.Sizeof(records[0]))
	_, err := m.WriteAt(bytesOf(records), index*size)
	return err
}

// bytesOf views records of generated types, which have no padding, as their bytes.
func bytesOf[T any](records []T) []byte {
	if len(records) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&records[0])), uintptr(len(records))*unsafe.Sizeof(records[0]))
}
