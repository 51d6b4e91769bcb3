package adopt

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"heddle/internal/host/hostnet"
	"heddle/internal/spec"
)

// world is a host in memory: the configuration of its two devices.
type world struct {
	exists, connected    bool
	device, iface        map[string]bool
	quiet, loose         bool
	failAt, crashAt      int // operations until one fails, or the agent dies in the middle of it; -1: never
	neverCut, refillGone bool
}

var errCrash = fmt.Errorf("%w: the agent died", ErrStop)

func newWorld(have []string) *world {
	w := &world{device: map[string]bool{}, iface: map[string]bool{}, failAt: -1, crashAt: -1, neverCut: true}
	for _, h := range have {
		w.device[h] = true
	}
	return w
}

func (w *world) Do(op Op, r *Record) error {
	if w.refillGone && op == Refill {
		return ErrStop
	}
	objects := func(kinds ...[]hostnet.Object) (all []string) {
		for _, k := range kinds {
			for _, o := range k {
				all = append(all, o.Text)
			}
		}
		return all
	}
	w.failAt--
	w.crashAt--
	half := w.failAt == -1 || w.crashAt == -1 // an operation that fails has been done in part
	change := func(m map[string]bool, names []string, on bool) {
		if half {
			names = names[:len(names)/2]
		}
		for _, n := range names {
			if on {
				m[n] = true
			} else {
				delete(m, n)
			}
		}
	}
	addresses, rest := objects(r.Config.Addresses), objects(r.Config.Routes, r.Config.Rules)
	switch op {
	case MakePair:
		w.exists, w.loose = !half, true
	case RemovePair:
		w.exists, w.loose = false, false
		clear(w.iface)
	case GiveAddresses:
		change(w.iface, addresses, true)
	case TakeAddresses:
		change(w.iface, addresses, false)
	case Connect:
		w.connected = !half
	case Disconnect:
		w.connected = false
	case GiveRoutes:
		change(w.iface, rest, true)
	case TakeRoutes:
		change(w.iface, rest, false)
	case Quiet:
		w.quiet = true
	case Wake:
		w.quiet = false
	case Empty:
		change(w.device, append(rest, addresses...), false)
	case Refill:
		change(w.device, append(addresses, rest...), true)
	case Settle, Loosen:
		w.loose = op == Loosen
	}
	for _, a := range append(addresses, rest...) {
		w.neverCut = w.neverCut && (w.device[a] || w.iface[a] && w.connected)
	}
	if w.failAt == -1 {
		return errors.New("no room")
	}
	if w.crashAt == -1 {
		return errCrash
	}
	return nil
}

func record(have []string) *Record {
	r := &Record{Phase: Moving, Config: &hostnet.Config{Device: "eth0"}, Port: spec.Port{Name: "vmk0", Device: "vmk0"}}
	for i, h := range have {
		o := hostnet.Object{Text: h}
		switch i % 3 {
		case 0:
			r.Config.Addresses = append(r.Config.Addresses, o)
		case 1:
			r.Config.Routes = append(r.Config.Routes, o)
		default:
			r.Config.Rules = append(r.Config.Rules, o)
		}
	}
	return r
}

// TestS81_WhateverPartOfAMoveWasDoneItIsUndone does any prefix of the steps, the last of them in part, and then undoes
// them, with a crash in the middle of undoing too. The host is as it was, and at no instant is anything on neither
// device.
func TestS81_WhateverPartOfAMoveWasDoneItIsUndone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		have := slices.Compact(slices.Sorted(slices.Values(rapid.SliceOfN(rapid.StringMatching(`[a-z]{3}`), 1,
			9).Draw(t, "have"))))
		w, r := newWorld(have), record(have)
		before := maps.Clone(w.device)
		saved := 0
		save := func() error { saved++; return nil }
		w.failAt = rapid.IntRange(-1, len(steps())-1).Draw(t, "fail at")
		never := w.failAt < 0
		err := Forward(r, save, w)
		if (err == nil) != never {
			t.Fatalf("forward: %v", err)
		}
		if err == nil && (len(w.device) > 0 || len(w.iface) != len(have) || w.loose || !w.connected ||
			saved != len(steps())) {
			t.Fatalf("moved: %+v, %d saves", w, saved)
		}
		w.failAt = -1000
		w.crashAt = rapid.IntRange(-1, 6).Draw(t, "crash at")
		crashed := *r
		if done, err := Back(r, save, w); done == errors.Is(err, errCrash) {
			t.Fatalf("back: %v, %v", done, err)
		}
		w.crashAt = -1000
		again := crashed // what the next agent reads; the step may be an earlier one
		again.Phase = Reverting
		if done, err := Back(&again, save, w); !done || err != nil || again.Step != 0 {
			t.Fatalf("back again: %v, %v", done, err)
		}
		if !maps.Equal(before, w.device) || len(w.iface) > 0 || w.exists || w.connected || w.quiet || !w.neverCut {
			t.Fatalf("%+v", w)
		}
	})
}

func TestS81_WithoutTheDeviceNothingIsTakenFromTheHostPort(t *testing.T) {
	w, r := newWorld([]string{"a", "b", "c"}), record([]string{"a", "b", "c"})
	save := func() error { return nil }
	if err := Forward(r, save, w); err != nil {
		t.Fatal(err)
	}
	w.refillGone = true
	for range 2 {
		if done, err := Back(r, save, w); done || !errors.Is(err, ErrStop) || len(w.iface) != 3 || !w.connected {
			t.Fatalf("%v, %v, %+v", done, err, w)
		}
	}
	w.refillGone = false
	if done, err := Back(r, save, w); !done || err != nil || len(w.device) != 3 || len(w.iface) != 0 {
		t.Fatalf("%v, %v, %+v", done, err, w)
	}
}

func TestS81_AMoveThatCannotBeWrittenDownIsNotBegun(t *testing.T) {
	w, r := newWorld([]string{"a"}), record([]string{"a"})
	full := errors.New("disk full")
	if err := Forward(r, func() error { return full }, w); !errors.Is(err, full) || w.exists {
		t.Fatalf("%v, %+v", err, w)
	}
}
