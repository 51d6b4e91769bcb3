package idle

import (
	"testing"
	"testing/synctest"
	"time"
)

// thing notes that it was closed.
type thing struct{ closed *int }

func (t thing) Close() error { *t.closed++; return nil }

// What is put is given once, closed after a while, and closed at once where something is kept or the place is closed.
func TestPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, closed := NewPlace[thing](time.Minute), 0
		put := func(want int) {
			t.Helper()
			if err := p.Put(thing{&closed}); err != nil || closed != want {
				t.Fatalf("%d things are closed, not %d; %v", closed, want, err)
			}
		}
		if _, ok := p.Take(); ok {
			t.Error("a new place has something")
		}
		put(0)
		put(1)
		if _, ok := p.Take(); !ok {
			t.Error("what was put is not there")
		}
		if _, ok := p.Take(); ok {
			t.Error("what was taken is there")
		}
		time.Sleep(30 * time.Second)
		put(1)
		time.Sleep(45 * time.Second) // the first one's minute is over, and not this one's
		synctest.Wait()
		if closed != 1 {
			t.Errorf("%d things are closed after 45 s", closed)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if _, ok := p.Take(); ok || closed != 2 {
			t.Errorf("after more than a minute: kept %v, %d closed", ok, closed)
		}
		put(2)
		if err := p.Close(); err != nil || closed != 3 {
			t.Errorf("%d things are closed with the place; %v", closed, err)
		}
		put(4)
	})
}
