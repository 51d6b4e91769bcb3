package dataplane

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sync/errgroup"

	"heddle/internal/abi"
	"heddle/internal/dataplane/entries"
)

// kind of flow; each kind has its own tables.
type kind int

const (
	ipv4  kind = iota
	other      // IPv6, and everything that is not IP
	kinds
)

// least is the size of the smallest table a CPU has. An entry takes 128 or 152 bytes, and a bucket or two of 16.
var least = [kinds]int{ipv4: 256, other: 64}

func (k kind) outer(m *vswitchMaps) *ebpf.Map {
	if k == ipv4 {
		return m.Flows
	}
	return m.WideFlows
}

func (k kind) spec(entries int) *ebpf.MapSpec {
	s := &ebpf.MapSpec{Name: "wide_flows", Type: ebpf.Hash, KeySize: uint32(unsafe.Sizeof(abi.WideFlowKey{})),
		ValueSize: uint32(unsafe.Sizeof(abi.Flow{})), MaxEntries: uint32(entries)}
	if k == ipv4 {
		s.Name, s.KeySize = "flows", uint32(unsafe.Sizeof(abi.FlowKey{}))
	}
	return s
}

// sharedSpec describes a table that takes memory for its actual entries, and 16 to 32 bytes for each possible entry.
func sharedSpec(entries uint32) *ebpf.MapSpec {
	s := other.spec(int(entries))
	s.Name, s.Flags = "shared_flows", noPrealloc
	return s
}

const noPrealloc = 1 // BPF_F_NO_PREALLOC

// flowTables are one of the two sets.
type flowTables struct {
	maps   *vswitchMaps
	set    int
	each   uint32             // fast slots of a CPU
	own    [][kinds]flowTable // by CPU
	places []places           // by CPU
	shared *ebpf.Map          // for flows that do not fit into the others
	looked time.Time          // when shared was read
	empty  bool               // shared is empty, except for flows of the present round
	// open: in the round in which the set is written next, or now, flows begin in fast slots if there are any. cleared
	// is the last round after which all cells were freed.
	open    bool
	cleared uint64
	recent  int // the most flows of a round on one CPU, in the last drains
}

// flowTable is one table. Map is nil if it does not exist: its flows are then counted in the shared one.
type flowTable struct {
	*ebpf.Map
	used int // entries that the last drain found
}

func newFlowTables(m *vswitchMaps, set int, each uint32) *flowTables {
	cpus := m.Flows.MaxEntries() / 2
	return &flowTables{maps: m, set: set, each: each, own: make([][kinds]flowTable, cpus), places: make([]places, cpus)}
}

func (t *flowTables) index(cpu int) uint32 { return uint32(t.set*len(t.own) + cpu) }

// adoptFlowTables finds the tables of a set; nil if it has none.
func adoptFlowTables(m *vswitchMaps, set int, each uint32) (*flowTables, error) {
	t := newFlowTables(m, set, each)
	var err error
	if t.shared, err = innerMap(m.SharedFlows, uint32(set)); err != nil || t.shared == nil {
		return nil, err
	}
	for cpu := range t.own {
		for k := range kinds {
			if t.own[cpu][k].Map, err = innerMap(k.outer(m), t.index(cpu)); err != nil {
				return nil, errors.Join(err, t.close())
			}
		}
	}
	if err := t.adoptPlaces(); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// innerMap opens an inner table of a table of tables; nil if there is none.
func innerMap(outer *ebpf.Map, i uint32) (*ebpf.Map, error) {
	var m *ebpf.Map
	err := outer.Lookup(i, &m)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open a table of flows: %w", err)
	}
	return m, nil
}

func (t *flowTables) close() error {
	if t == nil {
		return nil
	}
	var errs []error
	if t.shared != nil {
		errs = append(errs, t.shared.Close())
	}
	for i := range t.own {
		for k := range t.own[i] {
			errs = append(errs, t.own[i][k].close())
		}
	}
	return errors.Join(append(errs, closePlaces(t.places))...)
}

func (t *flowTable) close() error {
	if t.Map == nil {
		return nil
	}
	return t.Map.Close()
}

func (t *flowTable) size() int {
	if t.Map == nil {
		return 0
	}
	return int(t.MaxEntries())
}

// makeFlowTables makes a set with one table for all CPUs that can hold limit flows. That table is pinned last: its
// presence shows that the others exist.
func makeFlowTables(m *vswitchMaps, set int, each uint32, d []demand, limit uint32) (*flowTables, error) {
	t := newFlowTables(m, set, each)
	if err := errors.Join(t.exchange(d), t.makePlaces()); err != nil {
		return nil, errors.Join(err, t.close())
	}
	if err := t.makeShared(limit); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// makeShared replaces the table that all CPUs share, which is empty.
func (t *flowTables) makeShared(limit uint32) error {
	m, err := ebpf.NewMap(sharedSpec(limit))
	if err != nil {
		return err
	}
	if err := t.maps.SharedFlows.Put(uint32(t.set), m); err != nil {
		return errors.Join(err, m.Close())
	}
	old := t.shared
	t.shared = m
	if old != nil {
		return old.Close()
	}
	return nil
}

// discardAtOnce is how many tables are removed at the same time: each takes a grace period of the kernel, which they
// share.
const discardAtOnce = 16

// discard removes the tables of the set from the kernel, first the one whose presence shows that the others exist.
func (t *flowTables) discard() error {
	if err := entries.Delete(t.maps.SharedFlows, uint32(t.set)); err != nil {
		return err
	}
	var all errgroup.Group
	all.SetLimit(discardAtOnce)
	for cpu := range t.own {
		for k := range kinds {
			all.Go(func() error { return entries.Delete(k.outer(t.maps), t.index(cpu)) })
		}
		all.Go(func() error { return entries.Delete(t.maps.FlowPlaces, t.index(cpu)) })
	}
	return errors.Join(all.Wait(), t.close())
}

// demand is how large the tables of one CPU should be, in either set.
type demand [kinds]tableDemand

type tableDemand struct {
	size int
	most int // the size that would have been enough in the latest calm drains
	calm int
}

// measure starts from the existing tables.
func (t *flowTables) measure(d []demand) {
	for cpu := range t.own {
		for k := range kinds {
			d[cpu][k].size = max(d[cpu][k].size, t.own[cpu][k].size())
		}
	}
}

// calmDrains is the number of drains after which a table that is larger than needed is made smaller.
const calmDrains = 16

// saw records how many entries a drain found: the table should be able to hold half as many again.
func (d *tableDemand) saw(used, least int) {
	enough := max(used*3/2, least)
	if used*5/4 > d.size {
		*d = tableDemand{size: enough}
		return
	}
	d.most = max(d.most, enough)
	if d.calm++; d.calm < calmDrains {
		return
	}
	if d.most < d.size/2 {
		d.size = d.most
	}
	d.most, d.calm = 0, 0
}

// resize replaces the tables of a drained set by ones of the size that the traffic needs. spilled is the number of
// flows found in the shared table; limit is the most flows there may be, 0 = none is metered any more.
func (t *flowTables) resize(d []demand, spilled int, limit uint32) error {
	if limit == 0 {
		return nil
	}
	full, sum := 0, 0
	for cpu := range t.own {
		for k := range kinds {
			full += t.own[cpu][k].full()
		}
	}
	for cpu := range t.own {
		for k := range kinds {
			own := &t.own[cpu][k]
			d[cpu][k].saw(own.used+own.full()*(spilled+full-1)/max(full, 1), least[k])
			sum += d[cpu][k].size
		}
	}
	if sum > 2*int(limit)+len(t.own)*(least[ipv4]+least[other]) { // flows move between CPUs
		for cpu := range t.own {
			for k := range kinds {
				d[cpu][k] = tableDemand{size: max(t.own[cpu][k].used*3/2, least[k])}
			}
		}
	}
	if t.shared.MaxEntries() != limit {
		if err := t.makeShared(limit); err != nil {
			return err
		}
	}
	return t.exchange(d)
}

// full returns 1 if the table was full.
func (t *flowTable) full() int {
	if t.used >= t.size() {
		return 1
	}
	return 0
}

// exchange gives every CPU of an idle set tables of the wanted size, all of one kind at once: that takes one grace
// period of the kernel.
func (t *flowTables) exchange(d []demand) error {
	for k := range kinds {
		var cpus []int
		for cpu := range t.own {
			d[cpu][k].size = max(d[cpu][k].size, least[k])
			if t.own[cpu][k].size() != d[cpu][k].size {
				cpus = append(cpus, cpu)
			}
		}
		if err := t.exchangeKind(k, cpus, d); err != nil {
			return err
		}
	}
	return nil
}

func (t *flowTables) exchangeKind(k kind, cpus []int, d []demand) error {
	if len(cpus) == 0 {
		return nil
	}
	keys, fds := make([]uint32, len(cpus)), make([]uint32, len(cpus))
	made := make([]*ebpf.Map, 0, len(cpus))
	for i, cpu := range cpus {
		m, err := ebpf.NewMap(k.spec(d[cpu][k].size))
		if err != nil {
			return errors.Join(err, closeMaps(made))
		}
		made = append(made, m)
		keys[i], fds[i] = t.index(cpu), uint32(m.FD())
	}
	n, err := k.outer(t.maps).BatchUpdate(keys, fds, nil)
	if err == nil {
		n = len(cpus)
	}
	for i, cpu := range cpus[:n] {
		err = errors.Join(err, t.own[cpu][k].close())
		t.own[cpu][k].Map = made[i]
	}
	return errors.Join(err, closeMaps(made[n:]))
}

func closeMaps(maps []*ebpf.Map) error {
	var errs []error
	for _, m := range maps {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}
