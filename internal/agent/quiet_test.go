package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"heddle/internal/observe/event"
	"heddle/internal/plan"
)

// told returns the events of a kind.
func (r *rig) told(k event.Kind) (list []event.Event) {
	if r.events.Last() == 0 {
		return nil
	}
	all, _, err := r.events.After(r.t.Context(), 0)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range all {
		if e.Kind == k {
			list = append(list, e)
		}
	}
	return list
}

func TestAGuestThatFlapsItsLinkIsNotToldOfForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, base)
		pa := r.dev.veth("pa", "02:00:00:00:00:0a")
		if err := r.reconciler.reconcile(); err != nil {
			t.Fatal(err)
		}
		r.reporter.limit = tellLimit()
		before := len(r.told(event.Link))
		for range 1001 {
			pa.Peer.AdminUp = !pa.Peer.AdminUp
			if err := r.reconciler.reconcile(); err != nil {
				t.Fatal(err)
			}
		}
		if got := len(r.told(event.Link)) - before; got != tellBurst {
			t.Errorf("%d events of 1001 changes, want %d", got, tellBurst)
		}
		r.tick()
		if got := len(r.told(event.Link)) - before; got != tellBurst {
			t.Errorf("%d events a moment later", got)
		}
		time.Sleep(tellEvery)
		r.tick()
		list := r.told(event.Link)
		if got := len(list) - before; got != tellBurst+1 || list[len(list)-1].To != "down" {
			t.Errorf("%d events when one may be told again, the last %+v; want how the port is: down", got,
				list[len(list)-1])
		}
		time.Sleep(time.Hour)
		r.tick()
		if got := len(r.told(event.Link)) - before; got != tellBurst+1 {
			t.Error("the same is told again")
		}
		if err := r.block("b", true); err != nil || len(r.told(event.Blocked)) != 1 {
			t.Errorf("another port: %v", err)
		}
	})
}

func TestSettlingForOthersHasItsShareOfTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, base)
		pa := r.dev.veth("pa", "02:00:00:00:00:0a")
		r.settler.settle()
		settled := func() bool {
			return r.Active().Applied.Facts[plan.PortID{Switch: "lab", Name: "a"}].Up == pa.Peer.AdminUp
		}
		const each = 20 * time.Millisecond
		r.kernel.staged = func() { time.Sleep(each) } // the duration of a reconcile
		at, before := time.Now(), len(r.kernel.applied)
		for time.Since(at) < 10*time.Second {
			pa.Peer.AdminUp = !pa.Peer.AdminUp
			r.settler.settleSoon()
			select {
			case <-r.settler.itsTurn():
				r.settler.settle()
			case <-time.After(time.Millisecond):
			}
		}
		n := len(r.kernel.applied) - before
		if busy := time.Duration(n) * each; n == 0 || busy > 10*time.Second/settleShare+settleSaved+each {
			t.Errorf("settled %d times, %s of 10 s", n, busy)
		}
		time.Sleep(time.Minute)
		pa.Peer.AdminUp = !pa.Peer.AdminUp
		if r.settler.later != nil {
			<-r.settler.itsTurn()
			r.settler.settle()
		}
		for i := range 5 {
			pa.Peer.AdminUp = i%2 == 0
			if r.settler.settleSoon(); !settled() {
				t.Fatalf("single change %d had to wait", i)
			}
		}
	})
}
