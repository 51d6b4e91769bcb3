package cli

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// What comes late, but soon enough, is put out in its place; nothing waits for what comes later.
func TestGathering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []time.Duration
		begin := time.Now()
		g := &Gathering[time.Duration]{At: begin.Add,
			Put: func(v time.Duration) error { got = append(got, v); return nil }}
		expect := func(want ...time.Duration) {
			t.Helper()
			synctest.Wait()
			if !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		}
		for _, v := range []time.Duration{10, 30} {
			if err := g.Take(v); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(gatherFor / 2)
		_, _ = g.Take(20), g.Take(40)
		expect()
		time.Sleep(gatherFor / 2)
		expect(10, 20, 30)
		time.Sleep(gatherFor / 2)
		expect(10, 20, 30, 40)
		_, _ = g.Take(60), g.Take(50)
		if err := g.Flush(); err != nil {
			t.Error(err)
		}
		expect(10, 20, 30, 40, 50, 60)
		g.Put = func(time.Duration) error { return errors.New("closed") }
		_ = g.Take(70)
		if g.Flush() == nil || g.Take(80) == nil {
			t.Error("what cannot be put out is no error")
		}
		time.Sleep(2 * gatherFor)
	})
}
