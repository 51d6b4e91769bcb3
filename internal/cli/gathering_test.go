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
		g := &gathering[time.Duration]{at: begin.Add,
			put: func(v time.Duration) error { got = append(got, v); return nil }}
		expect := func(want ...time.Duration) {
			t.Helper()
			synctest.Wait()
			if !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		}
		for _, v := range []time.Duration{10, 30} {
			if err := g.take(v); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(gatherFor / 2)
		_, _ = g.take(20), g.take(40)
		expect()
		time.Sleep(gatherFor / 2)
		expect(10, 20, 30)
		time.Sleep(gatherFor / 2)
		expect(10, 20, 30, 40)
		_, _ = g.take(60), g.take(50)
		if err := g.flush(); err != nil {
			t.Error(err)
		}
		expect(10, 20, 30, 40, 50, 60)
		g.put = func(time.Duration) error { return errors.New("closed") }
		_ = g.take(70)
		if g.flush() == nil || g.take(80) == nil {
			t.Error("what cannot be put out is no error")
		}
		time.Sleep(2 * gatherFor)
	})
}
