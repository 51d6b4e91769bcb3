package meter

import (
	"encoding/binary"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"heddle/internal/flow"
)

// million is the number of flows of the benchmarks.
const million = 1 << 20

func manyKeys(n int) flow.Batch {
	b := flow.Batch{Number: 1, Keys: make([]flow.Key, n), Counts: make([]flow.Counts, n)}
	for i := range b.Keys {
		b.Keys[i] = key(uint16(i))
		binary.BigEndian.PutUint32(b.Keys[i].Src[:], uint32(i)*2654435761)
		b.Counts[i] = flow.Counts{Packets: 1, Bytes: 100, FrameBytes: 114, First: 1_700_000_000_000,
			Last: 1_700_000_000_000, In: 1, Out: 2}
	}
	return b
}

func filled(b *testing.B, set Settings) (*table, flow.Batch, Instant) {
	t, err := newTable(b.TempDir()+"/t", originSum("boot"), set, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(t.release)
	batch := manyKeys(million)
	now := Instant{Wall: time.UnixMilli(1_700_000_000_000), Up: 1000 * time.Second}
	for i := range batch.Keys {
		if t.fold(&batch.Keys[i], t.hash(&batch.Keys[i]), &batch.Counts[i], 1, now) != added {
			b.Fatal("no room")
		}
	}
	return t, batch, now
}

// Folding into a table of a million flows, in another order than they came: the time for each.
func BenchmarkFold(b *testing.B) {
	t, batch, now := filled(b, DefaultSettings())
	rand.Shuffle(len(batch.Keys), func(i, j int) {
		batch.Keys[i], batch.Keys[j] = batch.Keys[j], batch.Keys[i]
		batch.Counts[i], batch.Counts[j] = batch.Counts[j], batch.Counts[i]
	})
	number := t.batch + 1
	b.ResetTimer()
	for n := 0; n < b.N; n += portion {
		at := n % million
		if at == 0 {
			number++
		}
		var hashes [portion]uint32
		t.ahead(batch.Keys[at:at+portion], &hashes)
		for i := at; i < at+portion; i++ {
			t.fold(&batch.Keys[i], hashes[i-at], &batch.Counts[i], number, now)
		}
	}
}

// Inserting flows into an empty table: the time for each.
func BenchmarkInsert(b *testing.B) {
	batch := manyKeys(million)
	now := Instant{Wall: time.UnixMilli(1_700_000_000_000), Up: 1000 * time.Second}
	var t *table
	for i := 0; b.Loop(); i++ {
		if i%million == 0 {
			if t != nil {
				t.release()
			}
			t, _ = newTable(b.TempDir()+"/t", originSum("boot"), DefaultSettings(), slog.New(slog.DiscardHandler))
		}
		t.fold(&batch.Keys[i%million], t.hash(&batch.Keys[i%million]), &batch.Counts[i%million], 1, now)
	}
	t.release()
}

// Looking for what is due among a million flows of which nothing is: the time for a look, once a second.
func BenchmarkNothingDue(b *testing.B) {
	t, _, now := filled(b, DefaultSettings())
	h := newHarvest(slice)
	for b.Loop() {
		t.collect(floorTick(now.Up), slice, nil, h)
	}
}

// Making a record and noting that it was reported: the time for each.
func BenchmarkTell(b *testing.B) {
	t, _, now := filled(b, DefaultSettings())
	t.settled = 1
	h, tick := newHarvest(slice), floorTick(now.Up)
	b.ResetTimer()
	for n := 0; n < b.N; n += slice {
		h.reset()
		if n%million == 0 {
			tick += 650
			t.look()
		}
		t.collect(tick, slice, nil, h)
		for i := range h.items {
			h.items[i].end = false
		}
		t.settle(h.items, tick)
	}
}
