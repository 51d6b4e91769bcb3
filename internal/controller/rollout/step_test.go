package rollout_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"heddle/internal/controller/rollout"
)

// kept is where a rollout is kept: drivers read it and replace what they have read.
type kept struct {
	rollout.Rollout
	version int
}

// reading is what a driver has read, and what it saw of the hosts then; nil for one that was killed.
type reading struct {
	read kept
	seen rollout.Seen
	at   time.Time
}

// world is the hosts of a rollout: a stage's change, some time later, and something may go wrong at any time.
type world struct {
	kept
	rng     *rand.Rand
	now     time.Time
	pending int
	settled time.Time // since when none is
	found   bool
	drivers [3]*reading
}

// pass lets time pass.
func (w *world) pass() {
	w.now = w.now.Add(time.Duration(w.rng.IntN(8)) * time.Second)
	if w.pending > 0 && w.rng.IntN(3) == 0 {
		if w.pending--; w.pending == 0 {
			w.settled = w.now
		}
	}
	w.found = w.found || w.Begun > 0 && w.rng.IntN(200) == 0
}

// drive has one of the drivers do something: it is killed, or reads, or writes what it makes of what it has read. The
// error says what it must not have done.
func (w *world) drive() error {
	i := w.rng.IntN(len(w.drivers))
	d := w.drivers[i]
	w.drivers[i] = nil
	if w.rng.IntN(5) == 0 {
		return nil // killed, and started again
	}
	if d == nil {
		d = &reading{read: w.kept, at: w.now,
			seen: rollout.Seen{Own: 3, Changed: 3 - min(3, w.pending), Pending: w.pending, Looked: true}}
		if w.found {
			d.seen.Found = []rollout.Finding{{Host: "h", What: "drops"}}
		}
		w.drivers[i] = d
		return nil
	}
	next, changed := d.read.Next(d.at, d.seen)
	if !changed || d.read.version != w.version { // somebody else was faster
		return nil
	}
	if next.Begun > w.Begun {
		if next.Begun != w.Begun+1 || w.Begun > 0 && (len(d.seen.Found) > 0 || d.at.Sub(w.settled) < w.Wait) {
			return fmt.Errorf("stage %d begins %s after the one before was settled", next.Begun, d.at.Sub(w.settled))
		}
		w.pending = 1 + w.rng.IntN(3)
	}
	w.kept = kept{next, w.version + 1}
	return nil
}

// meddle has people pause and resume.
func (w *world) meddle() error {
	if w.rng.IntN(60) == 0 {
		if next, err := w.Pause("eve", w.now); err == nil {
			w.kept = kept{next, w.version + 1}
		}
	}
	if w.rng.IntN(20) == 0 && w.State == rollout.Paused {
		next, err := w.Resume(0)
		if err != nil {
			return err
		}
		w.kept = kept{next, w.version + 1}
	}
	return nil
}

// Drivers are killed at any time, several drive at once, and people pause and resume: stages come one after the other,
// none before the hosts of the one before had the change for the whole wait, and none after something was found.
func TestRollout_WhateverDrivesAStageBeginsAfterTheOneBefore(t *testing.T) {
	outcomes := map[rollout.State]int{}
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 102))
		halt := []rollout.Halt{rollout.Stop, rollout.Rollback}[rng.IntN(2)]
		w := &world{rng: rng, now: time.Unix(1_000_000, 0)}
		w.Rollout = rollout.Rollout{ID: "r1", State: rollout.Running, Halt: halt, Wait: time.Minute, Watch: time.Second,
			Order: rollout.NewOrder("s", "", stages(t, "1,10%,100%"), members(30))}
		for step := 0; step < 2000 && w.Driven(); step++ {
			w.pass()
			if err := errors.Join(w.drive(), w.meddle()); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if w.State == rollout.TakingBack {
				break
			}
			if w.State == rollout.Paused {
				w.State = rollout.Running
			}
		}
		outcomes[w.State]++
		if w.State == rollout.Done && w.Begun != 3 || w.State == rollout.TakingBack && halt != rollout.Rollback {
			t.Fatalf("seed %d: %s after %d stages", seed, w.State, w.Begun)
		}
	}
	for _, s := range []rollout.State{rollout.Done, rollout.Halted, rollout.TakingBack} {
		if outcomes[s] < 100 {
			t.Errorf("%v: this test shows less than it says", outcomes)
		}
	}
}

// Each line is what a driver sees, and what it makes of a rollout whose first stage of two has begun at 100 s and has
// waited for 30 s, of a minute.
func TestRollout_WhatIsSeenDecides(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	fine := rollout.Seen{Own: 1, Changed: 1, Looked: true}
	stalled := rollout.Seen{Own: 2, Changed: 1, Pending: 1, Looked: true}
	bad := rollout.Seen{Own: 1, Changed: 1, Looked: true, Found: []rollout.Finding{{}}}
	away := rollout.Seen{Own: 2, Looked: true}
	base := rollout.Rollout{ID: "r1", State: rollout.Running, Begun: 1, Settled: at(100), Wait: time.Minute,
		Order: rollout.NewOrder("s", "", stages(t, "1,100%"), members(3))}
	begun := func(n int) rollout.Rollout {
		r := base
		r.Begun = n
		return r
	}
	paused := base
	paused.State = rollout.Paused
	for name, c := range map[string]struct {
		r       rollout.Rollout
		now     int64
		seen    rollout.Seen
		changed bool
		state   rollout.State
		begun   int
		settled int64 // 0 for not
	}{
		"the time is not over":       {base, 130, fine, false, rollout.Running, 1, 100},
		"the time is over":           {base, 160, fine, true, rollout.Running, 2, 0},
		"nobody has looked":          {base, 160, rollout.Seen{Own: 1, Changed: 1}, false, rollout.Running, 1, 100},
		"a host has not said yet":    {base, 160, stalled, true, rollout.Running, 1, 0},
		"all hosts of it are away":   {base, 160, away, true, rollout.Running, 1, 0},
		"no host is new in it":       {base, 101, rollout.Seen{Looked: true}, true, rollout.Running, 2, 0},
		"a clock was set back":       {base, 50, fine, true, rollout.Running, 1, 50},
		"something is found":         {base, 130, bad, true, rollout.Halted, 1, 0},
		"the data were restored":     {base, 130, rollout.Seen{Epoch: 2}, true, rollout.Paused, 1, 0},
		"it was paused":              {paused, 160, fine, false, rollout.Paused, 1, 100},
		"nothing is found before it": {begun(0), 130, bad, true, rollout.Running, 1, 0},
		"what is usual is not known": {begun(0), 160, rollout.Seen{}, false, rollout.Running, 0, 100},
		"the last one is over":       {begun(2), 160, fine, true, rollout.Done, 2, 0},
		"the last ones are all away": {begun(2), 160, away, true, rollout.Done, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			next, changed := c.r.Next(at(c.now), c.seen)
			settled := int64(0)
			if !next.Settled.IsZero() {
				settled = next.Settled.Unix()
			}
			if changed != c.changed || next.State != c.state || next.Begun != c.begun || settled != c.settled {
				t.Errorf("%v: %s, %d begun, settled at %d", changed, next.State, next.Begun, settled)
			}
		})
	}
}

// A change that was taken back can't be taken back again, nor go on.
func TestRollout_WhatIsOverStaysSo(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	r := rollout.Rollout{ID: "r1", State: rollout.Running, Begun: 1,
		Order: rollout.NewOrder("s", "", stages(t, "1,100%"), members(3))}
	back, err := r.TakeBack("eve", now)
	if err != nil || back.State != rollout.Aborted || back.Open() {
		t.Fatal(back, err)
	}
	if again, err := r.TakeBack("", now); err != nil || again.State != rollout.TakenBack {
		t.Fatal(again, err)
	}
	for name, do := range map[string]func() (rollout.Rollout, error){
		"taken back again": func() (rollout.Rollout, error) { return back.TakeBack("", now) },
		"resumed":          func() (rollout.Rollout, error) { return back.Resume(1) },
		"paused":           func() (rollout.Rollout, error) { return back.Pause("eve", now) },
		"finished":         func() (rollout.Rollout, error) { return back.Finish("eve", now) },
		"superseded":       func() (rollout.Rollout, error) { return back.Supersede("r2", now) },
	} {
		if _, err := do(); !errors.Is(err, rollout.ErrState) {
			t.Errorf("it is %s: %v", name, err)
		}
	}
}
