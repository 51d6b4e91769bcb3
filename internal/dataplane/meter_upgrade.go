package dataplane

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/cilium/ebpf"
)

// meterTables are what flows are counted in. They are adopted together or not at all.
var meterTables = []string{"flows", "wide_flows", "shared_flows", "meter_control", "meter_points", "flow_rooms"}

// keepMeters has the new tables share those that flows are counted in with the ones that are taken over, where they look the same: old
// and new programs count into them side by side, and no flow is lost.
func (k *Kernel) keepMeters() error {
	for _, g := range slices.Backward(k.from) {
		if !sameMeters(g.layout, k.gen.layout) {
			continue
		}
		for _, name := range meterTables {
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

func sameMeters(a, b layout) bool {
	return !slices.ContainsFunc(meterTables, func(name string) bool {
		_, had := a.Tables[name]
		return !had || !reflect.DeepEqual(a.Tables[name], b.Tables[name])
	})
}

// tellLostFlows says what was counted and not drained in tables that look different, which go with them: an agent drains every few
// seconds, so that it is what came since.
func (k *Kernel) tellLostFlows() error {
	for _, g := range k.from {
		if _, had := g.layout.Tables["flows"]; !had || sameMeters(g.layout, k.gen.layout) {
			continue
		}
		var flows int
		var packets uint64
		for _, name := range []string{"flows", "wide_flows", "shared_flows"} {
			n, p, err := undrained(g, name)
			if err != nil {
				return fmt.Errorf("count the flows in table %s of %s: %w", name, filepath.Base(g.dir), err)
			}
			flows, packets = flows+n, packets+p
		}
		if flows > 0 {
			k.log.Warn("flows that the version before had counted and not yet handed over are lost: its tables look different", "flows", flows, "packets", packets)
		}
	}
	return nil
}

// undrained counts what is in the tables in a table.
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
	outer, err := ebpf.LoadPinnedMap(filepath.Join(g.dir, name), nil)
	if err != nil {
		return 0, 0, err
	}
	defer outer.Close()
	for i := range outer.MaxEntries() {
		inner, err := innerMap(outer, i)
		if err != nil {
			return 0, 0, err
		}
		if inner == nil {
			continue
		}
		var key, value []byte
		for it := inner.Iterate(); it.Next(&key, &value); {
			flows++
			packets += uint64(number(value[at:])) | uint64(number(value[at+4:]))<<32
		}
		if err := inner.Close(); err != nil {
			return 0, 0, err
		}
	}
	return flows, packets, nil
}
