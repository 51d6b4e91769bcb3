package store

import (
	"cmp"
	"maps"
	"slices"
)

// chunkInfo is what the memory knows of a chunk of ports without decoding it.
type chunkInfo struct{ free, bound, next int }

// chunkInfos are those of the port groups, by number. The memory's lock guards them.
type chunkInfos map[string]map[int64]chunkInfo

func (i chunkInfos) put(o *Object) {
	c := newOutline[skipped]()
	group, number, err := c.read(o.Name, o.Doc)
	if err != nil {
		return // it is reported when somebody needs it
	}
	if i[group] == nil {
		i[group] = map[int64]chunkInfo{}
	}
	i[group][number] = chunkInfo{free: len(c.Free), bound: len(c.Bound), next: int(c.Next)}
}

func (i chunkInfos) remove(name string) {
	group, number, ok := parseChunkName(name)
	if !ok {
		return
	}
	if delete(i[group], number); len(i[group]) == 0 {
		delete(i, group)
	}
}

// chunks are the numbers of a group's chunks for which ask is true, in order.
func (m *memory) chunks(group string, ask func(chunkInfo) bool) []int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var numbers []int64
	for number, info := range m.infos[group] {
		if ask(info) {
			numbers = append(numbers, number)
		}
	}
	slices.SortFunc(numbers, cmp.Compare)
	return numbers
}

// boundIn are how many ports are bound in each chunk whose group is asked for, by its name, as of a revision.
func (m *memory) boundIn(ask func(group string) bool) (bound map[string]int, revision int64) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	bound = map[string]int{}
	for group, chunks := range m.infos {
		if !ask(group) {
			continue
		}
		for number, info := range chunks {
			bound[chunkKey(group, number).Name] = info.bound
		}
	}
	return bound, m.rev
}

func anyChunk(chunkInfo) bool     { return true }
func withFree(c chunkInfo) bool   { return c.free > 0 }
func withPlaces(c chunkInfo) bool { return c.next < chunkPorts }

// countPorts is how many ports a group has, free and bound.
func (m *memory) countPorts(group string) (free, bound int) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for info := range maps.Values(m.infos[group]) {
		free, bound = free+info.free, bound+info.bound
	}
	return free, bound
}
