package dataplane

import (
	"fmt"

	"heddle/internal/abi"
)

const (
	// bucketCells are the cells in which a flow may be: as long as there are fewer flows than that, each finds one.
	bucketCells = abi.Bucket
	// clearEvery is after how many rounds the cells of a set are cleared. A cell contains 11 bits of the round in
	// which it was taken: one from 2,048 rounds before would look as if it were taken now.
	clearEvery = 1 << 10
)

// spared reports for each CPU whether its tables are empty and need not be read, because all flows that began there in
// the drained round have fast slots. The tables of a CPU are written only if a flow finds no free cell in its bucket,
// or no free slot; a flow is moved to the tables only to free its slot for such a flow.
func (f *Flows) spared(t *flowTables, round uint64) ([]bool, error) {
	spared := sized(&f.read.spared, len(t.places))
	for cpu := range t.places {
		spared[cpu] = false
		if p := &t.places[cpu]; p.Map != nil && t.open && !f.inTables {
			taken, err := p.taken(round)
			if err != nil {
				return nil, err
			}
			spared[cpu] = taken < min(bucketCells, p.count())
		}
	}
	return spared, nil
}

// readTables adds what is in the tables of the CPUs that are not spared.
func (t *flowTables) readTables(d *drain, round uint64, spared []bool) (err error) {
	for cpu := range t.own {
		own := &t.own[cpu]
		if own[ipv4].used, own[other].used = 0, 0; spared[cpu] {
			continue
		}
		d.number = round<<tableBits | uint64(cpu)
		if own[ipv4].used, err = drainTable(d, own[ipv4].Map, &d.read.keys, keyOf); err != nil {
			return err
		}
		if own[other].used, err = drainTable(d, own[other].Map, &d.read.wideKeys, wideKeyOf); err != nil {
			return err
		}
	}
	return nil
}

// settle is called when a round is completely drained: in the next round of the set, fast slots are open all the time,
// and no free cell looks taken.
func (t *flowTables) settle(round uint64) error {
	if t.open && round-t.cleared < clearEvery {
		return nil
	}
	for cpu := range t.places {
		if err := t.places[cpu].clear(); err != nil {
			return fmt.Errorf("clear the cells of flows: %w", err)
		}
	}
	t.open, t.cleared = true, round
	return nil
}

// clear frees all cells. The set must not be in use.
func (p *places) clear() error {
	if p.Map == nil {
		return nil
	}
	var free [1 << 10]byte
	for at, end := int64(firstCell), firstCell+int64(p.count())*cellSize; at < end; {
		n, err := p.memory.WriteAt(free[:min(int64(len(free)), end-at)], at)
		if err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

// taken returns how many fast slots were taken in the round.
func (p *places) taken(round uint64) (int, error) {
	var used [1]uint64
	if _, err := p.memory.ReadAt(bytesOf(used[:]), usedAt); err != nil {
		return 0, fmt.Errorf("read how many places are taken: %w", err)
	}
	if uint32(used[0]>>32) != uint32(round) {
		return 0, nil
	}
	return min(int(uint32(used[0])), p.count()), nil
}
