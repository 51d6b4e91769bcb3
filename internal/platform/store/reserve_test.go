package store

import (
	"errors"
	"strings"
	"testing"
)

// With a database that is full by ordinary changes, what only removes, revocations and claims are taken.
func TestS129_AFullStoreTakesRevocationsRemovalsAndClaims(t *testing.T) {
	o := Options{Dir: t.TempDir(), QuotaBytes: LeastQuota}
	s := open(t, o)
	withGroup(t, s, web, 5)
	write(t, s, put(KindHost, "stolen", `1`, New))
	s.Close()
	s = crowd(t, o)
	if err := s.Maintain(patient(t)); !errors.Is(err, ErrNoSpace) {
		t.Fatal(err)
	}
	for i := range 20 {
		_, err := s.Write(patient(t), []Change{put(KindHost, "new", `1`, New)})
		if !errors.Is(err, ErrNoSpace) || !strings.Contains(err.Error(), "revocations and claims") {
			t.Fatalf("an ordinary change, time %d: %v", i, err)
		}
	}
	if err := s.Resize(patient(t), web, 9, nil); !errors.Is(err, ErrNoSpace) {
		t.Errorf("more static ports: %v", err)
	}
	revoke := put("revocations", "current", `"`+strings.Repeat("r", 1<<14)+`"`, Any)
	revoke.Vital = true
	write(t, s, revoke, Change{Key: Key{KindHost, "stolen"}, Delete: true, IfVersion: Any})
	claim(t, s, ClaimRequest{PortGroup: web, Binding: nic("a", "vm1")})
	if _, err := s.Write(patient(t), []Change{{Key: Key{KindTemplate, "0"}, Delete: true, IfVersion: Any},
		put(KindHost, "new", `1`, New)}); !errors.Is(err, ErrNoSpace) {
		t.Errorf("a change that adds and removes: %v", err)
	}
	if hasAlarm(t, s) {
		t.Error("the quota itself is reached")
	}
}

// While a majority has no room on its disks nothing is written; what is read is current all the same.
func TestS128_NothingIsWrittenWhileItIsHeldBack(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir()})
	write(t, s, put(KindHost, "a", `1`, New))
	s.Limits.HoldBack(&NoRoomElsewhere{Members: []string{"controller c2: it is full"}, Away: []string{"controller c3"}})
	_, err := s.Write(patient(t), []Change{put(KindHost, "b", `1`, New)})
	var away *Unavailable
	if !errors.As(err, &away) || away.MaybeWritten || !strings.Contains(err.Error(), "c2: it is full") ||
		!strings.Contains(err.Error(), "c3 cannot be asked") {
		t.Errorf("a change: %v", err)
	}
	if err := s.Sync(patient(t)); err != nil {
		t.Errorf("a read: %v", err)
	}
	s.Limits.HoldBack(nil)
	write(t, s, put(KindHost, "b", `1`, New))
}
