package meter

import (
	"testing"
	"time"

	"heddle/internal/flow"
)

// A kill at any step of freeing reported flows leaves no flow unreported, and none that is reported again with other
// totals. The steps are those of settle.
func TestKillAtEachStepOfAnEndDoublesNothing(t *testing.T) {
	for _, pair := range []bool{false, true} {
		steps := 5
		if !pair {
			steps = 2
		}
		for n := range steps {
			w := newWorld(t, biflows)
			asked := key(1)
			w.send(asked, 3)
			if pair {
				answered, _ := opposite(&asked)
				w.send(answered, 4)
			}
			w.run(time.Second)
			w.pass(20 * time.Second)
			tab, to := w.m.switches["lab"].table, told{}
			tab.collect(floorTick(w.now.Up), slice, nil, w.m.harvest)
			if len(w.m.harvest.items) != 1 {
				t.Fatalf("%d records instead of one", len(w.m.harvest.items))
			}
			first := w.m.harvest.records[0]
			to.add(first)
			x := w.m.harvest.items[0]
			all := []func(){tab.file.entries[x.first].free}
			if pair {
				a, b := &tab.file.entries[x.first], &tab.file.entries[x.second]
				all = []func(){a.over, b.over, b.free, a.free}
			}
			for _, step := range all[:n] {
				step()
			}
			w.kill()
			w.run(40 * time.Second)
			again := w.take()
			for _, r := range again {
				to.add(r)
				if r.Reason != flow.IdleTimeout || pair && n == 0 && (r.Reverse == nil || r.Key != first.Key) {
					t.Errorf("pair %v, killed behind step %d: record %+v", pair, n, r)
				}
			}
			if want := map[bool]int{false: 1, true: 2}[pair]; len(to) != want {
				t.Errorf("pair %v, killed behind step %d: %d flows were told of instead of %d", pair, n, len(to), want)
			}
			for k, packets := range to.perKey() {
				if want := map[flow.Direction]uint64{flow.Egress: 3, flow.Ingress: 4}[k.Direction]; packets != want {
					t.Errorf("pair %v, killed behind step %d: %d packets are told of instead of %d", pair, n, packets,
						want)
				}
			}
			if done := len(again) == 0; done != (n >= (len(all)+1)/2) {
				t.Errorf("pair %v, killed behind step %d: told again %v", pair, n, !done)
			}
			if n := w.m.Statistics()["lab"].Flows; n != 0 {
				t.Errorf("%d flows are left", n)
			}
		}
	}
}

// Free space is kept for a while, and then released; later flows allocate it again.
func TestRoomThatIsNotUsedIsGivenBack(t *testing.T) {
	set := minute
	set.MaxFlows = 3 * chunkEntries
	w := newWorld(t, set)
	for p := range 2*chunkEntries + 1 {
		k := key(uint16(p))
		k.DstPort = uint16(p >> 12)
		w.send(k, 1)
	}
	w.kernel.size = 1000
	bytes := func() int64 { return w.m.Statistics()["lab"].FileBytes / (chunkEntries * entrySize) }
	w.run(16 * time.Second)
	if n := bytes(); n != 3 {
		t.Errorf("%d chunks have room, of 3 that are in use", n)
	}
	w.run(4 * time.Second)
	if n := bytes(); n != 3 || w.m.Statistics()["lab"].Flows != 0 {
		t.Errorf("%d chunks have room, right after the flows ended", n)
	}
	w.run(20 * time.Second)
	if n := bytes(); n != 0 {
		t.Errorf("%d chunks keep their room for nothing", n)
	}
	w.take()
	w.send(key(1), 5)
	w.run(20 * time.Second)
	if r := w.one(); r.Total.Packets != 5 {
		t.Errorf("record %+v", r)
	}
}
