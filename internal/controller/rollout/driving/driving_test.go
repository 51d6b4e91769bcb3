package driving_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"heddle/internal/controller/rollout"
	"heddle/internal/controller/rollout/driving"
)

// cluster is hosts, and where their rollout is kept. A host takes what it is to have after a while.
type cluster struct {
	mu      sync.Mutex
	r       rollout.Rollout
	version int64
	usual   map[string]rollout.Usual
	// begun is when each stage had begun, ended when the rollout had.
	begun []time.Time
	asked []time.Time // when hosts were asked what they have counted
	// answer is how long that takes them, looks is how often the driver has looked at them and sight how long a look
	// takes, and busy: they say something all the time.
	answer, sight time.Duration
	looks         int
	busy          bool
	// kill is called before each write and after it, when the driver has not heard yet that it was made: a test ends
	// the driver there.
	kill    func(what string)
	refuses string // why nothing is taken back
	away    map[string]bool
	bad     func(stage int) bool // the hosts of a stage drop frames with the change
	backs   int
	said    []string
	silent  func(stage int) bool // the hosts of a stage do not say with the change what they have counted
	mute    bool                 // they never do
}

const hostsOfAll = 10

func newCluster(t *testing.T, halt rollout.Halt) *cluster {
	t.Helper()
	stages, err := rollout.Parse("1,30%,100%")
	if err != nil {
		t.Fatal(err)
	}
	var members []rollout.Member
	for i := range hostsOfAll {
		members = append(members, rollout.Member{ID: fmt.Sprint(i)})
	}
	return &cluster{version: 1, kill: func(string) {}, away: map[string]bool{}, bad: func(int) bool { return false },
		r: rollout.Rollout{ID: "r1", State: rollout.Running, Halt: halt, Wait: time.Minute, Watch: 5 * time.Second,
			Epoch: 1, Order: rollout.NewOrder("s", "", stages, members)}}
}

func (c *cluster) Changed() <-chan struct{} {
	changed := make(chan struct{})
	if c.busy {
		close(changed)
	}
	return changed
}

func (c *cluster) Unanswered([]string) []string { return nil }

func (c *cluster) Hosts(_ context.Context, r *rollout.Rollout, _ map[string]driving.Host,
	_ bool) map[string]driving.Host {
	time.Sleep(c.sight)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks++
	all := map[string]driving.Host{}
	for i := range hostsOfAll {
		h := driving.Host{Name: fmt.Sprint("h", i), State: driving.Unchanged,
			Stage: r.Order.StageOf(rollout.Member{ID: fmt.Sprint(i)})}
		if c.away[h.Name] {
			h.Trouble = "it is not connected"
		}
		switch {
		case h.Stage >= r.Begun:
		case c.away[h.Name]:
			h.State = driving.Away
		case time.Since(c.begun[h.Stage]) < 3*time.Second:
			h.State, h.Soon = driving.Changing, true
		default:
			h.State = driving.Changed
		}
		all[h.Name] = h
	}
	return all
}

func (c *cluster) Vitals(ctx context.Context, names, _ []string) map[string]rollout.Vitals {
	defer func() { // what they say is as of when they were asked
		select {
		case <-time.After(c.answer):
		case <-ctx.Done():
		}
	}()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, time.Now())
	all := map[string]rollout.Vitals{}
	now := float64(time.Now().UnixNano()) / 1e9
	for _, name := range names {
		v := rollout.Vitals{Known: true, At: now, Ports: 1, Drops: map[string]uint64{}}
		stage := c.r.Order.StageOf(rollout.Member{ID: name[1:]})
		if stage < c.r.Begun && c.bad(stage) {
			v.Drops["vlan"] = uint64(100 * time.Since(c.begun[stage]).Seconds())
		}
		if stage < c.r.Begun && c.silent != nil && c.silent(stage) {
			v = rollout.Vitals{Silent: "it does not answer", Mute: c.mute}
		}
		all[name] = v
	}
	return all
}

func (c *cluster) Read(string) (rollout.Rollout, int64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.r, c.version, true
}

// write replaces the rollout; the driver may be killed just before that, or before it hears of it.
func (c *cluster) write(ctx context.Context, r rollout.Rollout, version int64) (int64, error) {
	c.kill("before")
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	c.mu.Lock()
	if version != c.version {
		c.mu.Unlock()
		return 0, driving.ErrOther
	}
	for len(c.begun) < r.Begun {
		c.begun = append(c.begun, time.Now())
	}
	if r.State == rollout.TakenBack {
		c.backs++
	}
	c.r, c.version = r, c.version+1
	now := c.version
	c.mu.Unlock()
	c.kill("after")
	return now, ctx.Err()
}

func (c *cluster) Replace(ctx context.Context, r rollout.Rollout, version int64) (int64, error) {
	return c.write(ctx, r, version)
}

func (c *cluster) Usual(string) (map[string]rollout.Usual, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.usual, nil
}

func (c *cluster) KeepUsual(_ context.Context, _ string, u map[string]rollout.Usual) error {
	c.kill("usual")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.usual = u
	return nil
}

func (c *cluster) TakeBack(ctx context.Context, _ string) error {
	r, version, _ := c.Read("")
	if c.refuses != "" {
		return &driving.Refused{Why: c.refuses}
	}
	next, err := r.TakeBack("", time.Now())
	if err != nil {
		return driving.ErrOther
	}
	_, err = c.write(ctx, next, version)
	return err
}

func (c *cluster) Said(_ context.Context, _, now rollout.Rollout) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said = append(c.said, fmt.Sprint(now.State, " ", now.Begun))
}

// drive drives until the rollout needs no driver, with as many drivers at a time; those that are killed are followed by
// others. born is told how each is killed.
func (c *cluster) drive(t *testing.T, at int, born func(n int, kill context.CancelFunc)) rollout.Rollout {
	t.Helper()
	var all sync.WaitGroup
	for n := range at {
		all.Go(func() {
			for {
				ctx, cancel := context.WithCancel(t.Context())
				born(n, cancel)
				err := driving.Driver{World: c, Record: c, Epoch: 1}.Drive(ctx, "r1")
				cancel()
				if r, _, _ := c.Read(""); !r.Driven() {
					return
				}
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
					return
				}
				time.Sleep(time.Second) // until another one has the lease
			}
		})
	}
	all.Wait()
	r, _, _ := c.Read("")
	return r
}

// lives is for drivers that nobody kills.
func lives(int, context.CancelFunc) {}

// Each stage begins when all hosts of the one before have had the change for the whole wait, and not much later.
func TestDriver_GoesFromStageToStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, rollout.Stop)
		began := time.Now()
		if r := c.drive(t, 1, lives); r.State != rollout.Done || r.Begun != 3 {
			t.Fatalf("it is %s after %d stages", r.State, r.Begun)
		}
		want := 5*time.Second + 3*(3*time.Second+time.Minute) // the hosts take three seconds each time
		if took := time.Since(began); took < want || took > want+5*time.Second {
			t.Errorf("it took %s, want %s", took, want)
		}
		if !slices.Equal(c.said, []string{"running 1", "running 2", "running 3", "done 3"}) {
			t.Errorf("it said %q", c.said)
		}
	})
}

// Before the first stage hosts are asked twice, at the beginning and when they have been watched; in each stage for the
// last time just before it ends, so that their answers count and none is waited for. Nobody asks as a stage begins,
// when hosts are busy with the change.
func TestDriver_AsksHostsWhenTheirAnswersCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, rollout.Stop)
		if r := c.drive(t, 1, lives); r.State != rollout.Done {
			t.Fatalf("it is %s", r.State)
		}
		before := slices.IndexFunc(c.asked, func(at time.Time) bool { return !at.Before(c.begun[0]) })
		if before != 2 {
			t.Errorf("the hosts were asked %d times before the first stage, want 2", before)
		}
		for i := range c.begun[1:] {
			from, to := c.begun[i], c.begun[i+1]
			var last time.Time
			for _, at := range c.asked {
				if !at.Before(from) && at.Sub(from) < time.Second {
					t.Errorf("stage %d: asked %s after it began", i, at.Sub(from))
				}
				if at.Before(to) {
					last = at
				}
			}
			if early := to.Sub(last); early > time.Second {
				t.Errorf("stage %d: asked for the last time %s before the next one", i, early)
			}
		}
	})
}

// Hosts that take long to answer are asked the last time so early that their answers are there when the stage ends, and
// not once more: nobody could wait for that. No stage waits for an answer where the time suffices for two.
func TestDriver_AsksHostsThatTakeLongOnceAtTheEnd(t *testing.T) {
	for _, c := range []struct{ wait, answer time.Duration }{{time.Minute, time.Second}, {time.Minute, 4 * time.Second},
		{time.Minute, 8 * time.Second}, {5 * time.Second, time.Second}, {5 * time.Second, 2 * time.Second}} {
		t.Run(fmt.Sprintf("%s of %s", c.answer, c.wait), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newCluster(t, rollout.Stop)
				w.answer, w.r.Wait, w.r.Watch, w.sight = c.answer, c.wait, time.Minute, 100*time.Millisecond
				if r := w.drive(t, 1, lives); r.State != rollout.Done {
					t.Fatalf("it is %s", r.State)
				}
				for i, end := range w.begun[1:] {
					for _, at := range w.asked {
						if at.Before(end) && at.Add(c.answer).After(end) {
							t.Errorf("stage %d: asked %s before its end, which the answers missed", i, end.Sub(at))
						}
					}
					took := end.Sub(w.begun[i])
					if most := c.wait + 5*time.Second; took > most { // hosts are looked at every 2 s here
						t.Errorf("stage %d: it took %s, want %s at most", i, took, most)
					}
				}
			})
		})
	}
}

// Hosts that say something all the time, as those of a large fleet do, are looked at ten times a second and no more.
func TestDriver_LooksAtHostsThatSayMuchNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, rollout.Stop)
		c.busy = true
		began := time.Now()
		if r := c.drive(t, 1, lives); r.State != rollout.Done {
			t.Fatalf("it is %s", r.State)
		}
		// More often while hosts make the change, which is 3 s of each stage here, and that takes no time to look.
		took := time.Since(began)
		most := int(took/(100*time.Millisecond)) + 3*int(3*time.Second/(10*time.Millisecond)) + 50
		if c.looks > most {
			t.Errorf("%d looks in %s, want at most %d", c.looks, took, most)
		}
	})
}

// What drops frames in the second stage halts there: nothing of the third stage begins, whoever drives. Taken back, it
// is so once.
func TestDriver_HaltsOrTakesBack(t *testing.T) {
	for name, c := range map[string]struct {
		halt    rollout.Halt
		refuses string
		want    rollout.State
		note    string
	}{
		"stop":     {halt: rollout.Stop, want: rollout.Halted},
		"rollback": {halt: rollout.Rollback, want: rollout.TakenBack},
		"a rollback that is refused": {rollout.Rollback, "port group dvs/new is in use", rollout.Halted,
			"the change can't be taken back by itself: port group dvs/new is in use"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newCluster(t, c.halt)
				w.refuses = c.refuses
				w.bad = func(stage int) bool { return stage == 1 }
				r := w.drive(t, 2, lives)
				if r.State != c.want || r.Begun != 2 || len(r.Found) == 0 || r.Note != c.note {
					t.Errorf("it is %s after %d stages (%s), found %v", r.State, r.Begun, r.Note, r.Found)
				}
				if took := time.Since(w.begun[1]); took > time.Minute {
					t.Errorf("that took %s from the beginning of the stage", took)
				}
			})
		})
	}
}

// A stage of which no host is there waits, for hours, and goes on when one is back.
func TestDriver_WaitsForAHostOfTheStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, rollout.Stop)
		for i := range hostsOfAll {
			if name := fmt.Sprint("h", i); c.r.Order.StageOf(rollout.Member{ID: fmt.Sprint(i)}) == 0 {
				c.away[name] = true
			}
		}
		time.AfterFunc(5*time.Hour, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			clear(c.away)
		})
		if r := c.drive(t, 1, lives); r.State != rollout.Done || c.begun[1].Sub(c.begun[0]) < 4*time.Hour {
			t.Errorf("it is %s, found %v, the stages began at %v", r.State, r.Found, c.begun)
		}
	})
}

// Drivers are killed at any write, before it and before they hear that it was made, in each phase, and rivals drive at
// the same time: the outcome is what it is without, no stage begins before its time, and a change is taken back once.
func TestDriver_WhoeverIsKilledTheOutcomeIsTheSame(t *testing.T) {
	killed := map[string]int{}
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 17))
			c := newCluster(t, rollout.Rollback)
			fails := seed%2 == 1
			c.bad = func(stage int) bool { return fails && stage == 1 }
			var mu sync.Mutex
			victims := &sync.Map{}
			c.kill = func(what string) {
				mu.Lock()
				defer mu.Unlock()
				if rng.IntN(3) != 0 {
					return
				}
				r, _, _ := c.Read("")
				killed[fmt.Sprintf("%s %d %s", what, r.Begun, r.State)]++
				victims.Range(func(k, cancel any) bool {
					victims.Delete(k)
					cancel.(context.CancelFunc)()
					return rng.IntN(2) == 0
				})
			}
			r := c.drive(t, 1+int(seed%3), func(n int, kill context.CancelFunc) { victims.Store(n, kill) })
			want, stages := rollout.Done, 3
			if fails {
				want, stages = rollout.TakenBack, 2
			}
			if r.State != want || r.Begun != stages || fails && c.backs != 1 {
				t.Errorf("seed %d: it is %s after %d stages, and was taken back %d times", seed, r.State, r.Begun,
					c.backs)
			}
			for i := 1; i < len(c.begun); i++ {
				if took := c.begun[i].Sub(c.begun[i-1]); took < time.Minute+3*time.Second {
					t.Errorf("seed %d: stage %d began %s after the one before", seed, i+1, took)
				}
			}
		})
	}
	for _, phase := range []string{"usual 0 running", "before 0 running", "after 1 running", "before 2 running",
		"before 2 taking-back", "after 2 taken-back", "before 3 running", "after 3 done"} {
		if killed[phase] == 0 {
			t.Errorf("no driver was killed %s: %v", phase, killed)
		}
	}
}
