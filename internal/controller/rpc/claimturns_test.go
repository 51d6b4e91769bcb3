package rpc

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/cluster"
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

// A host whose claim finds no turn or no place is answered, and gets its port when it asks again.
func TestClaims_AHostAsksAgainWhenTheControllerIsBusy(t *testing.T) {
	c := newController(t)
	c.define(leaseText)
	host := c.up("esx1")
	ask := func() error {
		_, err := host.client.Claim(t.Context(), &controllerv1.PortClaim{Switch: "dvs", PortGroup: "web", Vm: vmOf,
			Adapter: "net0"})
		return err
	}
	for name, held := range map[string]chan struct{}{"no turn": c.turns.work, "no place": c.turns.held} {
		for range cap(held) {
			held <- struct{}{}
		}
		if err := ask(); !errors.Is(err, cluster.ErrNoController) {
			t.Errorf("%s: %v", name, err)
		}
		for range cap(held) {
			<-held
		}
	}
	if err := ask(); err != nil {
		t.Errorf("when there is a turn again: %v", err)
	}
	if c.boundTo() != "esx1" {
		t.Errorf("the port is bound on %q", c.boundTo())
	}
}
