package dataplane

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
)

// meterTables are the tables in which flows are counted. They are adopted together or not at all.
var meterTables = []string{"flows", "wide_flows", "shared_flows", "meter_control", "meter_points", "flow_rooms"}

// placeTables are adopted too if they have the same layout. Otherwise, or if there were none, flows begin in new fast
// slots: the same flow may have counts in the tables as well.
var placeTables = []string{"flow_places"}

// keepMeters makes the new tables share the flow tables of the old generation if they have the same layout: old and new
// programs count into them side by side, and no flow is lost.
func (k *Kernel) keepMeters() error {
	for _, g := range slices.Backward(k.from) {
		if !sameTables(meterTables, g.layout, k.gen.layout) {
			continue
		}
		names := meterTables
		if sameTables(placeTables, g.layout, k.gen.layout) {
			names = slices.Concat(names, placeTables)
		}
		for _, name := range names {
			m, err := ebpf.LoadPinnedMap(filepath.Join(g.dir, name), nil)
			if err != nil {
				return fmt.Errorf("open table %s of %s: %w", name, filepath.Base(g.dir), err)
			}
			if err := errors.Join(pinAgain(m, filepath.Join(k.gen.dir, name)), m.Close()); err != nil {
				return fmt.Errorf("keep table %s: %w", name, err)
			}
		}
		return nil
	}
	return nil
}

func sameTables(names []string, a, b layout) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		_, had := a.Tables[name]
		return !had || !reflect.DeepEqual(a.Tables[name], b.Tables[name])
	})
}

// reportLostFlows logs what was counted but not drained in tables of another layout, which are removed. An agent drains
// every few seconds, so this is only what was counted since.
func (k *Kernel) reportLostFlows() error {
	for _, g := range k.from {
		var flows int
		var packets uint64
		add := func(count func(*generation, string) (int, uint64, error), names ...string) error {
			for _, name := range names {
				if _, had := g.layout.Tables[name]; !had {
					continue
				}
				n, p, err := count(g, name)
				if err != nil {
					return fmt.Errorf("count the flows in table %s of %s: %w", name, filepath.Base(g.dir), err)
				}
				flows, packets = flows+n, packets+p
			}
			return nil
		}
		same := sameTables(meterTables, g.layout, k.gen.layout)
		if !same {
			if err := add(undrained, "flows", "wide_flows", "shared_flows"); err != nil {
				return err
			}
		}
		if !same || !sameTables(placeTables, g.layout, k.gen.layout) {
			if err := add(undrainedPlaces, placeTables...); err != nil {
				return err
			}
		}
		if flows > 0 {
			k.log.Warn("flows that the version before had counted and not yet handed over are lost: its tables look "+
				"different", "flows", flows, "packets", packets)
		}
	}
	return nil
}

// undrained counts the flows and packets in the inner tables of a table.
func undrained(g *generation, name string) (flows int, packets uint64, err error) {
	t := g.layout.Tables[name]
	if t.Inner == nil {
		return 0, 0, nil
	}
	i := slices.IndexFunc(t.Inner.ValueField, func(f recordField) bool { return f.Name == "packets" && f.Size == 8 })
	if i < 0 {
		return 0, 0, nil
	}
	at := t.Inner.ValueField[i].At
	err = g.eachInner(name, func(value []byte) {
		flows++
		packets += uint64(number(value[at:])) | uint64(number(value[at+4:]))<<32
	})
	return flows, packets, err
}

// undrainedPlaces counts flows and packets in fast slots, if these have our layout: slots that were drained are free.
func undrainedPlaces(g *generation, name string) (flows int, packets uint64, err error) {
	inner := g.layout.Tables[name].Inner
	if inner == nil || !slices.ContainsFunc(inner.ValueField, func(f recordField) bool {
		return f.Name == "words" &&
			f.At == firstCell
	}) {
		return 0, 0, nil
	}
	err = g.eachInner(name, func(value []byte) {
		cells := placesIn(inner.Value)
		all := make([]abi.FlowPlace, cells)
		copy(bytesOf(all), value[firstCell+cells*cellSize:])
		used := uint64(number(value[usedAt:])) | uint64(number(value[usedAt+4:]))<<32
		all = all[:min(int(uint32(used)), cells)]
		for i := range all {
			if uint32(all[i].Tag>>1) == uint32(used>>32) && all[i].Flow.Packets > 0 {
				flows++
				packets += all[i].Flow.Packets
			}
		}
	})
	return flows, packets, err
}

// eachInner visits every value in the inner tables of a table.
func (g *generation) eachInner(name string, visit func(value []byte)) error {
	outer, err := ebpf.LoadPinnedMap(filepath.Join(g.dir, name), nil)
	if err != nil {
		return err
	}
	defer outer.Close()
	for i := range outer.MaxEntries() {
		inner, err := innerMap(outer, i)
		if err != nil {
			return err
		}
		if inner == nil {
			continue
		}
		var key, value []byte
		for it := inner.Iterate(); it.Next(&key, &value); {
			visit(value)
		}
		if err := inner.Close(); err != nil {
			return err
		}
	}
	return nil
}
