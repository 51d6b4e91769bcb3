package kerneltest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"

	"heddle/internal/dataplane"
	"heddle/internal/plan"
)

// rehearse runs a frame through a dry run on copies of the live tables, and gives its outcome as carry does.
func (h *host) rehearse(at string, frame []byte) []string {
	h.t.Helper()
	s, err := h.k.Snapshot()
	if err != nil {
		h.t.Fatal(err)
	}
	d, err := s.DryRun()
	if err != nil {
		h.t.Fatal(err)
	}
	defer d.Close()
	r, err := d.Frame(port(at), frame)
	if err != nil {
		h.t.Fatal(err)
	}
	return recordedLines(r, frame)
}

func recordedLines(r *dataplane.Recorded, sent []byte) []string {
	lines := []string{disposition(r.Reason.String(), r.Delivered)}
	for _, c := range r.Copies {
		if c.HostStack {
			lines = append(lines, fmt.Sprintf("host gets %x", sent))
		} else {
			lines = append(lines, fmt.Sprintf("%s gets %x", label(c.To), c.Frame))
		}
	}
	for _, x := range r.Refused {
		if x.To != (plan.PortID{}) {
			lines = append(lines, fmt.Sprintf("%s refused: %s", label(x.To), x.Reason))
		}
	}
	slices.Sort(lines)
	return lines
}

// changed names what differs between two dumps.
func changed(before, after map[string]string) (names []string) {
	for name, b := range before {
		if after[name] != b {
			names = append(names, name)
		}
	}
	return names
}

// dump is the content of every table of the switch, and every counter.
func (h *host) dump() map[string]string {
	h.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(h.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		m, err := ebpf.LoadPinnedMap(path, &ebpf.LoadPinOptions{ReadOnly: true})
		if err != nil {
			return nil // a program or a link
		}
		defer m.Close()
		return dumpTable(e.Name(), m, all)
	})
	if err != nil {
		h.t.Fatal(err)
	}
	for name, c := range h.counters() {
		all["counters of "+name] = fmt.Sprintf("%+v", c)
	}
	return all
}

// dumpTable reads a table in large pieces: some have 65,536 entries.
func dumpTable(name string, m *ebpf.Map, into map[string]string) error {
	switch m.Type() {
	case ebpf.RingBuf, ebpf.ArrayOfMaps, ebpf.HashOfMaps, ebpf.PerfEventArray, ebpf.PerCPUArray: // counters are read apart
		return nil
	}
	const n = 4096
	piece := func(size uint32) reflect.Value {
		t := reflect.SliceOf(reflect.ArrayOf(int(size), reflect.TypeFor[byte]()))
		return reflect.MakeSlice(t, n, n)
	}
	keys, values := piece(m.KeySize()), piece(m.ValueSize())
	var cursor ebpf.MapBatchCursor
	for {
		got, err := m.BatchLookup(&cursor, keys.Interface(), values.Interface(), nil)
		for _, x := range []struct {
			what string
			list reflect.Value
			size uint32
		}{{"keys", keys, m.KeySize()}, {"values", values, m.ValueSize()}} {
			b := unsafe.Slice((*byte)(x.list.UnsafePointer()), got*int(x.size))
			into[name+", "+x.what] += string(b)
		}
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("table %s: %w", name, err)
		}
	}
}

// A dry run on copies of the live tables does with each frame what the live program then does, byte by byte, and changes nothing: no
// table, no counter, no event, and nothing reaches anybody.
func TestADryRunDoesWhatTheLiveProgramThenDoesAndChangesNothing(t *testing.T) {
	h := newHost(t, `
  uplinks: [{name: u1, device: dev1}, {name: u2, device: dev2, vlans: ["0-19"]}]
  portGroups:
  - {name: ten, vlan: {access: 10}}
  - {name: twenty, vlan: {access: 20}}
  - {name: trunk, vlan: {trunk: ["10-20"]}}
  - {name: nest, vlan: {access: 10}, security: {forgedTransmits: accept, macLearning: {enabled: true, limit: 1}}}
  - {name: sniff, vlan: {access: 10}, security: {promiscuous: accept}}
`, "vm1 ten", "tap2 ten", "vm3 trunk", "vm4 nest", "tap5 nest", "vm6 sniff", "vm7 twenty")
	for _, x := range []struct{ at, frame string }{
		{"vm1", "tap2 vm1 0800"}, {"vm1", "all vm1 0806"}, {"vm1", "ext1 vm1 0800"}, {"vm1", "all vm9 0806"}, {"vm1", "all vm1 8100 000a 0806"},
		{"vm3", "all vm3 8100 b00a 0806"}, {"vm4", "all nest4 0806"}, {"vm1", "nest4 vm1 0800"}, {"vm4", "all nest5 0806"}, {"tap5", "all nest4 0806"},
		{"u1", "all ext1 8100 000a 0806"}, {"u2", "all ext1 8100 000a 0806"}, {"u2", "vm7 ext1 8100 0014 0800"},
		{"vm7", "all vm7 0806"}, {"u1", "all vm7 8100 0014 0806"}, {"vm1", "dev1 vm1 0800"}, {"tap2", "vm1 tap2 0800 [1501]"},
	} {
		before := h.dump()
		want := h.rehearse(x.at, wire(x.frame))
		if after := h.dump(); !maps.Equal(before, after) {
			t.Fatalf("the dry run of %s at %s changed live tables: %v", x.frame, x.at, changed(before, after))
		}
		if got := h.flush(); len(got) > 0 {
			t.Fatalf("the dry run of %s at %s let frames out: %v", x.frame, x.at, got)
		}
		if len(before["macs, keys"])+len(before["marks, keys"])+len(before["own_marks, values"])+len(before["ports, values"]) < 100_000 {
			t.Fatal("the dump misses tables")
		}
		got, _ := h.carry(x.at, wire(x.frame))
		if d := cmp.Diff(got, want); d != "" {
			t.Errorf("%s at %s (-live program +dry run):\n%s", x.frame, x.at, d)
		}
	}
}
