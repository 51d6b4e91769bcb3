package fleet

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/capability"
	"heddle/internal/controller/fanout"
	"heddle/internal/controller/part"
)

// Claims are worked on in the order in which they came, some at a time, and those that would be answered too late are
// not worked on at all.
func TestClaims_ComeToTheirTurnsInOrderOrAreToldToAskAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTurns(slog.New(slog.DiscardHandler))
		const slow, more = 1500 * time.Millisecond, 40
		var mu sync.Mutex
		var order []int
		refused, most, now := 0, 0, 0
		for i := range 2*claimTurns + more {
			go func() {
				taken := r.take(t.Context(), func() {
					mu.Lock()
					order, now = append(order, i), now+1
					most = max(most, now)
					mu.Unlock()
					time.Sleep(slow)
					mu.Lock()
					now--
					mu.Unlock()
				})
				mu.Lock()
				defer mu.Unlock()
				if !taken {
					refused++
				}
			}()
			synctest.Wait() // the next comes later
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if most != claimTurns || len(order) != 2*claimTurns || refused != more {
			t.Errorf("%d at a time, %d had their turn, %d were refused", most, len(order), refused)
		}
		if slices.Max(order[:claimTurns]) >= claimTurns || slices.Max(order) >= 2*claimTurns {
			t.Error("they did not come to their turns in order")
		}
	})
}

func TestClaims_OnlySoManyHaveAPlace(t *testing.T) {
	r := newTurns(slog.New(slog.DiscardHandler))
	for range mostClaimsHeld {
		if !r.enter() {
			t.Fatal("there is no place before all are taken")
		}
	}
	if r.enter() {
		t.Error("there is a place when all are taken")
	}
	r.leave()
	if !r.enter() {
		t.Error("there is no place when one is given back")
	}
}

// Claims that nobody answers fill no log.
func TestClaims_ThoseWithoutAnAnswerAreLoggedInFewLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		r := newTurns(slog.New(slog.NewTextHandler(&log, nil)))
		for range 1000 {
			r.untaken("esx1", &controllerv1.PortClaim{Switch: "dvs", PortGroup: "web"}, "etcd does not answer")
		}
		time.Sleep(untakenEvery)
		r.untaken("esx1", &controllerv1.PortClaim{Switch: "dvs", PortGroup: "web"}, "etcd does not answer")
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != untakenBurst+1 || !strings.Contains(lines[untakenBurst], "others=995") {
			t.Errorf("%d lines: %q", len(lines), lines)
		}
	})
}

// A host whose claim finds no turn or no place is answered: it is to ask again.
func TestClaims_AHostAsksAgainWhenTheControllerIsBusy(t *testing.T) {
	hosts := capability.Hosts{Of: func(string) (fanout.Host, bool) { return fanout.Host{Name: "esx1"}, true }}
	p := New(capability.Deps{Log: slog.New(slog.DiscardHandler), Hosts: hosts})
	woken := make(chan struct{}, 2)
	c := &part.Conn{Poke: func() { woken <- struct{}{} }, Slots: make(chan struct{}, part.MostRequests)}
	p.bindings.Connected("h1", c, nil)
	for name, held := range map[string]chan struct{}{"no turn": p.turns.work, "no place": p.turns.held} {
		for range cap(held) {
			held <- struct{}{}
		}
		q := &controllerv1.FollowSliceRequest{Claims: []*controllerv1.PortClaim{{Number: 7}}}
		p.Serve(t.Context(), "h1", c, q)
		<-woken
		a := tells(p.bindings, "h1", c).GetAnswers()
		if len(a) != 1 || a[0].GetNumber() != 7 || !a[0].GetUnavailable() {
			t.Errorf("%s: %v", name, a)
		}
		for range cap(held) {
			<-held
		}
	}
}
