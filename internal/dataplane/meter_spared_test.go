package dataplane

import (
	"errors"
	"fmt"
	"math/bits"
	"testing"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/flow"
	"heddle/internal/test/testkit"
)

// plant counts flows in the CPUs' own tables of the present round, and one in the table that all CPUs share, as if they
// had found no fast slot.
func plant(t *testing.T, f *Flows) {
	t.Helper()
	c, err := f.control()
	if err != nil {
		t.Fatal(err)
	}
	tables := f.tables[c.Round&1]
	for cpu := range tables.own {
		own := &tables.own[cpu]
		if err := errors.Join(own[ipv4].Put(abi.FlowKey{Protocol: 6}, abi.Flow{Packets: 1}),
			own[other].Put(abi.WideFlowKey{Protocol: 6}, abi.Flow{Packets: 1})); err != nil {
			t.Fatal(err)
		}
	}
	if err := tables.shared.Put(abi.WideFlowKey{Protocol: 17}, abi.Flow{Packets: 1}); err != nil {
		t.Fatal(err)
	}
}

// A drain reads tables if there may be flows in them: if some flows filled a bucket, if it does not know how the round
// began, or if flows may begin there for another reason.
func TestTablesAreReadWhereFlowsMayHaveNoPlace(t *testing.T) {
	testkit.Long(t, "makes many flows; TestPlacesAreUsedAgainByTheNextAgent has fewer")
	cpus := ebpf.MustPossibleCPU()
	for _, c := range []struct {
		what  string
		flows int
		first bool // drain of the set
		do    func(*Flows) error
		read  int // tables at least
	}{
		{what: "no flow"},
		{what: "fewer flows than a bucket has cells", flows: bucketCells - 1},
		{what: "as many on one CPU", flows: (bucketCells-1)*cpus + 1, read: 2 + 1},
		{what: "the first drain", flows: 1, first: true, read: 2*cpus + 1},
		{what: "another plan", flows: 1, do: func(f *Flows) error {
			f.unsure = true
			return nil
		}, read: 2*cpus + 1},
		{what: "no places any more", flows: 1, do: (*Flows).Retire, read: 2*cpus + 1},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := newFlowRig(t, max(1, c.flows))
			f := r.FrameBench.Flows()
			if err := r.Apply(r.d); err != nil {
				t.Fatal(err)
			}
			if !c.first {
				if err := errors.Join(f.Drain(forget), f.Drain(forget)); err != nil {
					t.Fatal(err)
				}
			}
			if c.do != nil {
				if err := c.do(f); err != nil {
					t.Fatal(err)
				}
			}
			if c.flows > 0 {
				r.send(1, func(i uint32) uint32 { return i })
			}
			for _, s := range f.tables {
				s.looked = s.looked.Add(-2 * lookEvery)
			}
			plant(t, f)
			planted, sent := 0, 0
			if err := f.Drain(func(b flow.Batch) error {
				for i := range b.Keys {
					if b.Keys[i].Point == 0 {
						planted += int(b.Counts[i].Packets)
					} else {
						sent += int(b.Counts[i].Packets)
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if planted < c.read || c.read == 0 && planted > 0 || sent != c.flows {
				t.Errorf("flows came from %d tables, want %d; and %d packets of %d flows", planted, c.read, sent,
					c.flows)
			}
		})
	}
}

// Cells of an earlier round that would look taken in a coming round are free before it begins: its flows find fast
// slots, however few there are.
func TestCellsAreClearedBeforeTheirRoundComesAgain(t *testing.T) {
	const alike = 1 << 11 // rounds
	r := newFlowRig(t, 1)
	f := r.FrameBench.Flows()
	if err := errors.Join(r.Apply(r.d), f.Drain(forget), f.Drain(forget)); err != nil {
		t.Fatal(err)
	}
	c, err := f.control()
	if err != nil {
		t.Fatal(err)
	}
	for _, tables := range f.tables { // both have been there for long
		tables.cleared -= clearEvery
		for i := range tables.places {
			leaveCells(t, &tables.places[i], c.Round+2)
		}
	}
	if err := errors.Join(f.Drain(forget), f.Drain(forget)); err != nil {
		t.Fatal(err)
	}
	for set, tables := range f.tables {
		if age := c.Round + 1 - tables.cleared; age >= alike/2 {
			t.Errorf("set %d: the cells were cleared %d rounds ago", set, age)
		}
	}
	r.send(5, func(i uint32) uint32 { return i })
	all := &sorted{kept: newKept(t)}
	if err := f.Drain(all.add); err != nil {
		t.Fatal(err)
	}
	if all.fromPlaces != 5 || all.fromTables != 0 {
		t.Errorf("%d packets of 5 came from places, %d from tables", all.fromPlaces, all.fromTables)
	}
}

// leaveCells marks every cell as taken in a round.
func leaveCells(t *testing.T, p *places, round uint64) {
	t.Helper()
	for i := range p.count() {
		cell := (uint32(round)&0x7ff|0x800)<<20 | uint32(i)
		if _, err := p.memory.WriteAt(bytesOf([]uint32{cell}), firstCell+int64(i)*cellSize); err != nil {
			t.Fatal(err)
		}
	}
}

// With one flow fewer than there are cells, with as many, and with one more, each is counted exactly, whether the
// tables are read or not.
func TestFlowsAroundAFullBucketAreCountedExactly(t *testing.T) {
	testkit.Long(t, "makes many flows that fill a bucket; TestFlowsThatShareABucketAreCountedExactly has fewer")
	for flows := 1; flows <= bucketCells+1; flows++ {
		t.Run(fmt.Sprintf("%d flows", flows), func(t *testing.T) {
			r := newFlowRig(t, flows)
			f := r.FrameBench.Flows()
			if err := errors.Join(r.Apply(r.d), f.Drain(forget), f.Drain(forget)); err != nil {
				t.Fatal(err)
			}
			all := &sorted{kept: newKept(t)}
			const rounds, each = 4, 100
			for range rounds {
				r.send(each, func(i uint32) uint32 { return bits.ReverseBytes32(0x0a000000 + i) })
				if err := f.Drain(all.add); err != nil {
					t.Fatal(err)
				}
			}
			if len(all.flows) != flows {
				t.Errorf("%d flows of %d", len(all.flows), flows)
			}
			for k, c := range all.flows {
				if c.Packets != rounds*each {
					t.Errorf("%d packets of %v, want %d", c.Packets, k.Src[:4], rounds*each)
				}
			}
		})
	}
}
