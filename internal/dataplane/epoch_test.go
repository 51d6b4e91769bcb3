package dataplane

import (
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"heddle/internal/abi"
	"heddle/internal/binding"
	"heddle/internal/plan"
)

// The record of a port has an epoch, and an index of four bytes for each stage to come, which is zero until that stage
// is there.
func TestThePortRecordHasRoomForStagesToCome(t *testing.T) {
	var rec abi.Port
	for _, name := range []string{"Epoch", "ReservedIndex"} {
		f, ok := reflect.TypeOf(rec).FieldByName(name)
		if !ok || f.Offset%unsafe.Sizeof(rec.Epoch) != 0 || f.Type.Align() != int(unsafe.Sizeof(rec.Epoch)) {
			t.Errorf("field %s: %+v", name, f)
		}
	}
	if n := len(rec.ReservedIndex); n != 5 {
		t.Errorf("indexes for %d stages: want those of rules, shaping, private VLANs, mirrors, and the router", n)
	}
	if size := unsafe.Sizeof(rec); size != 128 {
		t.Errorf("the record of a port has %d bytes, two cache lines have 128", size)
	}
}

// without is the desired state with the first port alone.
func without(d binding.Desired) binding.Desired {
	sw := *d.Plan.Switches[0]
	sw.Ports = sw.Ports[:1]
	d.Plan = &plan.Plan{Switches: []*plan.Switch{&sw}}
	return d
}

// A slot that another port gets has another epoch, also when the agent was started anew between the two, and after an
// upgrade to tables of another layout.
func TestASlotThatIsUsedAgainHasAnotherEpoch(t *testing.T) {
	dir := bpffs(t)
	host, _, both := twoPorts(t)
	one := without(both)
	for i, step := range []struct {
		want binding.Desired
		w    tweak
		// epochs of the slots of vm1 and vm2; 0 = no port is there
		first, second uint32
	}{
		{both, tweak{}, 1, 1}, {one, tweak{}, 1, 0}, {both, tweak{}, 1, 2}, {one, tweak{}, 1, 0},
		{both, diesAt("", grown), 1, 3}, {one, diesAt("", grown), 1, 0}, {one, tweak{}, 1, 0},
		{both, tweak{}, 1, 4},
	} {
		err := life(t, host, dir, step.want, step.w, func(k *Kernel) {
			records := portRecords(t, k)
			for slot, want := range map[uint32]uint32{1: step.first, 2: step.second} {
				rec := records[slot]
				if rec.Epoch != want || rec.ReservedIndex != [5]uint32{} || rec.Reserved != 0 || rec.Reserved4 != 0 {
					t.Errorf("step %d: slot %d: epoch %d, want %d; the reserved fields are %v %v %v", i, slot,
						rec.Epoch, want, rec.ReservedIndex, rec.Reserved, rec.Reserved4)
				}
			}
		})
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
}

// withoutEpochs is a program whose tables do not say which epochs their slots have.
func withoutEpochs(spec *ebpf.CollectionSpec) {
	names := btf.UnderlyingType(spec.Maps["port_names"].Value).(*btf.Struct)
	names.Members = slices.DeleteFunc(names.Members, func(m btf.Member) bool { return m.Name == "epoch" })
}

// A port that was there before its tables had epochs has the first one, and the next port at its slot the second, also
// when the agent was started anew in between.
func TestAPortFromTablesWithoutEpochsHasTheFirst(t *testing.T) {
	dir := bpffs(t)
	host, _, both := twoPorts(t)
	one := without(both)
	if err := life(t, host, dir, both, tweak{spec: withoutEpochs}, nil); err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		want   binding.Desired
		second uint32 // epoch of the slot of vm2
	}{{both, 1}, {one, 0}, {both, 2}} {
		err := life(t, host, dir, step.want, tweak{}, func(k *Kernel) {
			records := portRecords(t, k)
			if first, second := records[1].Epoch, records[2].Epoch; first != 1 || second != step.second {
				t.Errorf("step %d: epochs %d and %d, want 1 and %d", i, first, second, step.second)
			}
		})
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
}

// portRecords reads the active half of the ports' table.
func portRecords(t *testing.T, k *Kernel) []abi.Port {
	t.Helper()
	control, err := k.tables.inForce()
	if err != nil {
		t.Fatal(err)
	}
	records := make([]abi.Port, abi.MaxPorts)
	at := int64(control.Generation&1) * abi.MaxPorts * int64(unsafe.Sizeof(abi.Port{}))
	if err := readAt(k.objects.Ports, bytesOf(records), at); err != nil {
		t.Fatal(err)
	}
	return records
}
