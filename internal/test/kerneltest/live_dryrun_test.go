package kerneltest

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"

	"heddle/internal/dataplane"
	"heddle/internal/plan"
)

// sending is a frame and who sends it.
type sending struct{ at, frame string }

// rehearse runs frames, one after the other, through a dry run on copies of the live tables, and gives the outcome of
// each as carry does.
func (h *host) rehearse(frames []sending) (outcomes [][]string) {
	h.t.Helper()
	s, err := h.k.Snapshot()
	if err != nil {
		h.t.Fatal(err)
	}
	return h.dryRun(s, frames)
}

// dryRun is rehearse on copies that were made before.
func (h *host) dryRun(s *dataplane.Snapshot, frames []sending) (outcomes [][]string) {
	h.t.Helper()
	d, err := s.DryRun()
	if err != nil {
		h.t.Fatal(err)
	}
	defer d.Close()
	for _, f := range frames {
		r, err := d.Frame(port(f.at), wire(f.frame))
		if err != nil {
			h.t.Fatal(err)
		}
		outcomes = append(outcomes, recordedLines(r, wire(f.frame)))
	}
	return outcomes
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

// content is what a table holds: how many bytes, and their digest. Tables have up to 65,536 entries.
type content struct {
	bytes  int
	digest uint64
}

var digests = maphash.MakeSeed()

func (c content) and(b []byte) content {
	var h maphash.Hash
	h.SetSeed(digests)
	maphash.WriteComparable(&h, c)
	_, _ = h.Write(b) // never fails
	return content{c.bytes + len(b), h.Sum64()}
}

// changed names what differs between two dumps.
func changed(before, after map[string]content) (names []string) {
	for name, b := range before {
		if after[name] != b {
			names = append(names, name)
		}
	}
	return names
}

// dump is the content of every table of the switch, and every counter.
func (h *host) dump() map[string]content {
	h.t.Helper()
	all := map[string]content{}
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
		all["counters of "+name] = content{}.and(fmt.Appendf(nil, "%+v", c))
	}
	return all
}

// dumpTable reads a table in large pieces.
func dumpTable(name string, m *ebpf.Map, into map[string]content) error {
	switch m.Type() {
	// counters are read by their own functions
	case ebpf.RingBuf, ebpf.ArrayOfMaps, ebpf.HashOfMaps, ebpf.PerfEventArray, ebpf.PerCPUArray:
		return nil
	}
	n := min(4096, int(m.MaxEntries())) // few entries can be large ones
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
			at := name + ", " + x.what
			into[at] = into[at].and(unsafe.Slice((*byte)(x.list.UnsafePointer()), got*int(x.size)))
		}
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("table %s: %w", name, err)
		}
	}
}

// A dry run on copies of the live tables does with each frame what the live program then does, byte by byte, and
// changes nothing: no table, no counter, no event, and nothing reaches anybody.
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
	h.rehearseAndSend(sending{"vm1", "tap2 vm1 0800"}, sending{"vm1", "all vm1 0806"}, sending{"vm1", "ext1 vm1 0800"},
		sending{"vm1", "all vm9 0806"}, sending{"vm1", "all vm1 8100 000a 0806"},
		sending{"vm3", "all vm3 8100 b00a 0806"})
	h.rehearseAndSend(sending{"vm4", "all nest4 0806"}, sending{"vm1", "nest4 vm1 0800"},
		sending{"vm4", "all nest5 0806"})
	// Each of these finds what the ones before have left in the live tables.
	h.rehearseAndSend(sending{"vm1", "nest4 vm1 0800"}, sending{"tap5", "all nest4 0806"},
		sending{"vm1", "nest4 vm1 0800"},
		sending{"u1", "all ext1 8100 000a 0806"}, sending{"u2", "all ext1 8100 000a 0806"},
		sending{"u2", "vm7 ext1 8100 0014 0800"},
		sending{"vm1", "dev1 vm1 0800"}, sending{"tap2", "vm1 tap2 0800 [1501]"})
}

// A frame that comes back by an uplink is the switch's own for a second, for the dry run as for the live program.
func TestADryRunKnowsWhatTheSwitchSentALittleWhileAgo(t *testing.T) {
	h := newHost(t, "  uplinks: [{name: u1, device: dev1}]\n  portGroups: [{name: twenty, vlan: {access: 20}}]",
		"vm1 twenty", "vm2 twenty")
	back := []sending{{"u1", "all vm1 8100 0014 0806"}}
	want := [][]string{{"delivered", fmt.Sprintf("host gets %x", wire(back[0].frame)), "vm1 refused: reflected",
		"vm2 refused: reflected"}}
	for deadline := time.Now().Add(patience); ; {
		h.carry("vm1", wire("all vm1 0806"))
		s, err := h.k.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(s.Sent, func(m dataplane.SentAt) bool { return m.MAC == plan.MAC(word("vm1")) }) {
			if time.Now().After(deadline) {
				t.Fatal("each snapshot comes more than a second after the frame")
			}
			continue
		}
		if d := cmp.Diff(want, h.dryRun(s, back)); d != "" {
			t.Errorf("right after it was sent (-want +dry run):\n%s", d)
		}
		break
	}
	h.await("a second has passed", func() bool {
		s, err := h.k.Snapshot()
		return err == nil && len(s.Sent) == 0
	})
	h.rehearseAndSend(back...)
}

// rehearseAndSend sends frames after a dry run of them has said what will become of each.
func (h *host) rehearseAndSend(frames ...sending) {
	h.t.Helper()
	before := h.dump()
	want := h.rehearse(frames)
	if after := h.dump(); !maps.Equal(before, after) {
		h.t.Fatalf("the dry run of %v changed live tables: %v", frames, changed(before, after))
	}
	if got := h.flush(); len(got) > 0 {
		h.t.Fatalf("the dry run of %v let frames out: %v", frames, got)
	}
	if before["macs, keys"].bytes+before["marks, keys"].bytes+before["own_marks, values"].bytes+
		before["ports, values"].bytes < 100_000 {
		h.t.Fatal("the dump misses tables")
	}
	for i, f := range frames {
		got, _ := h.carry(f.at, wire(f.frame))
		if d := cmp.Diff(got, want[i]); d != "" {
			h.t.Errorf("%s at %s (-live program +dry run):\n%s", f.frame, f.at, d)
		}
	}
}

// What is kept loaded from one dry run to the next remembers nothing of it: neither MACs, nor which sources sent, nor
// what a port has spent, and it takes what has changed since.
func TestADryRunKnowsNothingOfTheOneBefore(t *testing.T) {
	const text = `
  uplinks: [{name: u1, device: dev1}]
  portGroups:
  - {name: nest, security: {forgedTransmits: accept, macLearning: {enabled: true, unicastFlooding: false}}}
  - {name: plain, stormControl: {broadcast: 1, burst: 1s}}
`
	h := newHost(t, text, "vm1 nest", "vm2 plain", "vm3 plain")
	frames := []sending{{"vm2", "nest1 vm2 0800"}, {"vm1", "all nest1 0806"}, {"vm2", "nest1 vm2 0800"},
		{"vm3", "all vm3 0806"}, {"vm3", "all vm3 0806"}, {"u1", "all vm9 0806"}}
	first := h.rehearse(frames)
	if d := cmp.Diff(first, h.rehearse(frames)); d != "" {
		t.Errorf("the second dry run differs from the first:\n%s", d)
	}
	if slices.Equal(first[0], first[2]) || slices.Equal(first[3], first[4]) {
		t.Errorf("the frames leave nothing behind: %q", first)
	}
	h.text = strings.Replace(h.text, "name: plain, ", "name: plain, blocked: true, ", 1)
	h.inForce(h.plan())
	if got := h.rehearse(frames[:1]); !strings.Contains(got[0][0], "port-blocked") {
		t.Errorf("after the port group was blocked: %q", got)
	}
}
