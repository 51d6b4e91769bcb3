package difftest

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"heddle/internal/binding"
	"heddle/internal/dataplane"
	"heddle/internal/dataplane/compile"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/test/testkit"
)

// TestS112_TheProgramsOfATrunkDoWhatDryRunsTakeThemToDo: random frames of the owner of a trunk inside a VNI come out of
// the device's program as the dry run of the switch program has them, which is compared with the model elsewhere; and
// what the switch program hands on comes out with the owner's tags.
func TestS112_TheProgramsOfATrunkDoWhatDryRunsTakeThemToDo(t *testing.T) {
	testkit.Root(t)
	cfg, err := spec.Parse("trunk.yaml", []byte(overlaySwitch))
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Resolve(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := dataplane.NewCrossingRecorder()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := k.Set(binding.Desired{Plan: p}, time.Second); err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().Unix() / 86400)
	random := rand.New(rand.NewPCG(seed, 112))
	seen := map[string]int{}
	for i := range 6000 {
		from, vni, frame := overlayFrame(random)
		port := p.Port(plan.PortID{Switch: "s", Name: from})
		if vni != 0 || port == nil || !compile.IsTrunk(port) || endsEarly(frame) {
			continue
		}
		trunk, _ := compile.TrunkOf(port)
		want := trunk.Enter(k.Slots(), frame)
		got, passed, err := k.EnterTrunk(port.ID, frame, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if !passed || !bytes.Equal(got, want) {
			t.Fatalf("seed %d, frame %d from %s: %x\nwant %x\n got %x", seed, i, from, frame, want, got)
		}
		kind := "as it came"
		if !bytes.Equal(want, frame) {
			kind = map[uint16]string{0x8100: "numbered", 0x88a8: "of no segment"}[tagOf(want)]
		}
		seen[kind]++
		if kind != "numbered" {
			continue
		}
		want = trunk.Leave(k.Slots(), got)
		back, passed, err := k.LeaveTrunk(port.ID, got, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if !passed || !bytes.Equal(back, want) {
			t.Fatalf("seed %d, frame %d to %s: %x\nwant %x\n got %x", seed, i, from, got, want, back)
		}
		if !bytes.Equal(back, frame) && tagOf(frame) != 0 && binary.BigEndian.Uint16(frame[14:])&0xfff != 0 {
			t.Fatalf("seed %d: the owner of %s sent %x and would get %x", seed, from, frame, back)
		}
	}
	for _, kind := range []string{"as it came", "numbered", "of no segment"} {
		if seen[kind] == 0 {
			t.Errorf("seed %d: no frame %s: %v", seed, kind, seen)
		}
	}
}

// tagOf is the protocol of a frame's outermost tag; 0 for none.
func tagOf(frame []byte) uint16 {
	if !tagged(frame) {
		return 0
	}
	return binary.BigEndian.Uint16(frame[12:])
}

// endsEarly reports whether the kernel drops a frame before any program sees it, as it ends within its tag.
func endsEarly(frame []byte) bool { return tagged(frame) && len(frame) < 20 }
