package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// However many other writes are between the records, the newest ones below any revision are those that a read of all
// says.
func TestPast_TheNewestAreFoundBehindAnyNumberOfOtherWrites(t *testing.T) {
	s := openNew(t)
	rng := rand.New(rand.NewPCG(3, 4))
	other := Change{Key: Key{Kind: "thing", Name: "other"}, Doc: []byte(`{}`), IfVersion: Any}
	base := s.Revision()
	for i := range 300 {
		if i%100 == 50 { // a long stretch without a change of the definition
			for range 200 {
				if _, err := s.Write(t.Context(), []Change{other}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if rng.IntN(4) == 0 {
			if _, err := s.Write(t.Context(), []Change{other}); err != nil {
				t.Fatal(err)
			}
		}
		next, err := s.Write(t.Context(), []Change{other, NewRecord(base, fmt.Append(nil, i))})
		if err != nil {
			t.Fatal(err)
		}
		base = next
	}
	p := PastOf(s)
	all, err := p.Oldest(t.Context(), 1000)
	if err != nil || len(all) != 300 {
		t.Fatalf("%d records, %v", len(all), err)
	}
	for range 200 {
		below, limit := rng.Int64N(base+3), 1+rng.IntN(320)
		list, err := p.Newest(t.Context(), below, limit)
		if err != nil {
			t.Fatal(err)
		}
		var want []Record
		for i := len(all) - 1; i >= 0 && len(want) < limit; i-- {
			if below == 0 || all[i].Base < below {
				want = append(want, all[i])
			}
		}
		if fmt.Sprint(list) != fmt.Sprint(want) {
			t.Fatalf("below %d, %d of them: %d records instead of %d", below, limit, len(list), len(want))
		}
	}
}
