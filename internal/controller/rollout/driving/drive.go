package driving

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heddle/internal/controller/rollout"
)

// again is when a driver tries again what did not work.
const again = time.Second

// drive is one rollout that is driven.
type drive struct {
	*Driver
	id string
	// now is the rollout as this driver has written it last, with a clock that nobody sets.
	now     rollout.Rollout
	version int64
	hosts   map[string]Host
	looked  time.Time // at all hosts
	// rested is when it may look at the hosts again, looks how often it has since the hosts changed; changed and others
	// are as of parted, at the last look, and making are those that make the change.
	rested                  time.Time
	looks                   int
	changed, others, making []string
	since                   map[string]time.Time // hosts that have not answered
	// quiet are hosts with the change that do not say what they have counted, and since when.
	quiet   map[string]time.Time
	watch   *rollout.Watch
	sampled chan sample
	known   bool // what is usual was found out since
	samples int  // that were begun since the hosts changed
	asking  bool // a sample is under way
	unask   context.CancelFunc
	finally bool // the last one before the end of the stage has begun
	last    time.Time
	round   int
	// anewAt is when what was seen was forgotten, took how long the hosts took for the last sample.
	anewAt time.Time
	took   time.Duration
}

// Drive drives a rollout until it needs no driver any more, or ctx ends.
func (d Driver) Drive(ctx context.Context, id string) error {
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Answer == 0 {
		d.Answer = answers
	}
	v := &drive{Driver: &d, id: id, since: map[string]time.Time{}, quiet: map[string]time.Time{},
		sampled: make(chan sample, 1), unask: func() {}}
	defer func() { // nothing of it goes on
		if v.unask(); v.asking {
			<-v.sampled
		}
	}()
	if err := v.take(ctx); err != nil {
		return err
	}
	for ctx.Err() == nil {
		changed := v.Changed()
		done, err := v.step(ctx)
		switch {
		case done:
			return nil
		case errors.Is(err, ErrOther):
			continue
		case err != nil:
			v.pause(ctx, nil, again)
			continue
		}
		v.pause(ctx, changed, v.wait())
	}
	return ctx.Err()
}

// take takes a rollout over: its hosts are watched anew, for the whole time, as this driver has not seen them.
func (v *drive) take(ctx context.Context) error {
	r, version, ok := v.Read(v.id)
	if !ok {
		return nil
	}
	usual, err := v.Usual(v.id)
	if err != nil {
		return err
	}
	if usual == nil && r.Begun > 0 { // then the hosts without the change alone are what it is held against
		usual = map[string]rollout.Usual{}
	}
	v.watch = rollout.NewWatch(r.Wait, usual, r.Calm)
	if r.State == rollout.Running && !r.Settled.IsZero() {
		r.Settled = time.Time{}
		if version, err = v.Replace(ctx, r, version); err != nil && !errors.Is(err, ErrOther) {
			return err
		}
	}
	v.now, v.version = r, version
	return nil
}

// read is the rollout as it is; that of this driver where nobody else has changed it.
func (v *drive) read() (r rollout.Rollout, ok bool) {
	r, version, ok := v.Read(v.id)
	if ok && version == v.version {
		return v.now, true
	}
	if ok {
		if v.now.State != r.State || v.now.Begun != r.Begun {
			v.anew()
		}
		v.now, v.version = r, version
	}
	return r, ok
}

// step looks at the hosts and does what is to be done now. done: the rollout needs no driver any more.
func (v *drive) step(ctx context.Context) (done bool, err error) {
	r, ok := v.read()
	if !ok || !r.Driven() {
		return true, nil
	}
	if r.State == rollout.TakingBack {
		return false, v.takeBack(ctx, r)
	}
	v.look(ctx, &r)
	v.sample(ctx, &r)
	seen, err := v.seen(ctx, &r)
	if err != nil {
		return false, err
	}
	next, changed := r.Next(v.Now(), seen)
	if !changed {
		return false, nil
	}
	next.Calm = v.watch.Calm()
	if n, one := v.watch.Silent(); n > 0 && next.Note == "" && (next.Begun > r.Begun || next.State != r.State) {
		next.Note = fmt.Sprintf("%d hosts do not say what they have counted, such as %s: %s", n, one.Host, one.What)
	}
	return false, v.replace(ctx, next)
}

// replace replaces the rollout, and says so.
func (v *drive) replace(ctx context.Context, next rollout.Rollout) error {
	version, err := v.Replace(ctx, next, v.version)
	if err != nil {
		return err
	}
	was := v.now
	v.now, v.version = next, version
	settled := was.Settled.IsZero() != next.Settled.IsZero() && next.Begun > 0 // before, hosts are watched as they are
	if was.Begun != next.Begun || was.State != next.State || settled {
		v.anew()
	}
	if was.Begun != next.Begun || was.State != next.State {
		v.Said(ctx, was, next)
	}
	return nil
}

// anew forgets what was seen of the hosts.
func (v *drive) anew() {
	v.unask() // it would be of before
	v.watch.Anew()
	v.round++
	v.known, v.samples, v.finally, v.anewAt = false, 0, false, v.Now()
	v.hosts, v.looks, v.looked = nil, 0, time.Time{}
	clear(v.quiet)
}

// takeBack takes the change back. Where that is refused it halts.
func (v *drive) takeBack(ctx context.Context, r rollout.Rollout) error {
	err := v.TakeBack(ctx, v.id)
	var refused *Refused
	if errors.As(err, &refused) {
		return v.replace(ctx, r.Stuck(refused.Why, v.Now().UTC()))
	}
	if err == nil {
		if now, _, ok := v.Read(v.id); ok {
			v.Said(ctx, r, now)
		}
	}
	return err
}
