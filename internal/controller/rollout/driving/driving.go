// Package driving is how a controller drives a rollout: it looks at the hosts, has the next stage begin, and halts or
// takes back what goes wrong. It reaches the hosts and the store through what it is given. All that it does is a
// replacement of the rollout as it was read: of two drivers one is told, and one that dies leaves nothing half done.
package driving

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"heddle/internal/controller/rollout"
)

// The states of hosts of a rollout.
const (
	Changed   = "changed"
	Changing  = "changing"
	Away      = "away" // it gets the version of its stage when it is back
	Failed    = "failed"
	Unchanged = "unchanged"
)

// Host is one that a rollout concerns.
type Host struct {
	Name  string
	Stage int
	// State is one of those above; Problems say why it is not changed.
	State    string
	Problems []string
	// Trouble is as of rollout.Vitals; Soon: the host may say soon what became of the change, or be back.
	Trouble string
	Soon    bool
}

// World is the hosts.
type World interface {
	// Hosts are those that a rollout concerns, by name. before is what they were at the last look; full looks anew at
	// all of them, otherwise those of other controllers that had the change may be as before.
	Hosts(ctx context.Context, r *rollout.Rollout, before map[string]Host, full bool) map[string]Host
	// Vitals are what hosts have counted, without those that are not connected.
	Vitals(ctx context.Context, names, switches []string) map[string]rollout.Vitals
	// Changed is closed when hosts may stand otherwise than before.
	Changed() <-chan struct{}
	// Unanswered is what is left of the names without those at the end whose hosts have said what became of the
	// change, or are not of this controller. It costs little, whatever the number of names.
	Unanswered(names []string) []string
}

// ErrOther says that somebody else has replaced the rollout since it was read.
var ErrOther = errors.New("somebody else has changed the rollout")

// Refused is why a change can't be taken back.
type Refused struct{ Why string }

func (r *Refused) Error() string { return r.Why }

// Record is where rollouts are kept.
type Record interface {
	// Read reads a rollout; ok is false where there is none.
	Read(id string) (r rollout.Rollout, version int64, ok bool)
	// Replace replaces one that was read at that version. The error may be ErrOther.
	Replace(ctx context.Context, r rollout.Rollout, version int64) (now int64, err error)
	// Usual is how hosts were before the first stage; nil where nobody has kept it.
	Usual(id string) (map[string]rollout.Usual, error)
	// KeepUsual keeps that.
	KeepUsual(ctx context.Context, id string, usual map[string]rollout.Usual) error
	// TakeBack takes the change back, and ends the rollout by that. The error may be a *Refused, or ErrOther.
	TakeBack(ctx context.Context, id string) error
	// Said is called when a rollout has another state, or another stage, by what this driver did.
	Said(ctx context.Context, was, now rollout.Rollout)
}

// Driver drives rollouts.
type Driver struct {
	World
	Record
	// Epoch of the controllers' data.
	Epoch int64
	// Now is the time; nil for the machine's.
	Now func() time.Time
	// Answer is how long a host that is connected may take to make a change; a minute if it is zero.
	Answer time.Duration
}

// Times of a driver.
const (
	// Between two looks at the hosts is lookShare times what the last one took, from leastBreath to mostBreath.
	lookShare   = 10
	leastBreath = 10 * time.Millisecond
	mostBreath  = 100 * time.Millisecond
	// again is when it tries again what did not work.
	again = time.Second
	// fully is how often it looks at all hosts.
	fully = 2 * time.Second
	// askShare times what hosts take to answer lies between two questions, where there is time for it.
	askShare = 4
	// early is when hosts of a stage that just began are asked at the latest, while not all of them have the change.
	early = time.Second
	// answers is how long a host may take.
	answers = time.Minute
	// mostOthers is how many hosts without the change are looked at for comparison.
	mostOthers = 200
)

// drive is one rollout that is driven.
type drive struct {
	*Driver
	id string
	// now is the rollout as this driver has written it last, with a clock that nobody sets.
	now     rollout.Rollout
	version int64
	hosts   map[string]Host
	looked  time.Time // at all hosts
	// rested is when it may look at the hosts again; changed and others are as of parted, at the last look, and making
	// are those that make the change.
	rested                  time.Time
	changed, others, making []string
	since                   map[string]time.Time // hosts that have not answered
	watch                   *rollout.Watch
	sampled                 chan sample
	known                   bool // what is usual was found out since
	samples                 int  // that were begun since the hosts changed
	asking                  bool // a sample is under way
	last                    time.Time
	round                   int
	// anewAt is when what was seen was forgotten, took how long the hosts took for the last sample.
	anewAt time.Time
	took   time.Duration
}

// sample is what hosts have counted.
type sample struct {
	round int
	at    time.Time
	took  time.Duration
	hosts map[string]rollout.Vitals
}

// Drive drives a rollout until it needs no driver any more, or ctx ends.
func (d Driver) Drive(ctx context.Context, id string) error {
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Answer == 0 {
		d.Answer = answers
	}
	v := &drive{Driver: &d, id: id, since: map[string]time.Time{}, sampled: make(chan sample, 1)}
	defer func() { // nothing of it goes on
		if v.asking {
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
	v.watch.Anew()
	v.round++
	v.known, v.samples, v.hosts, v.looked, v.anewAt = false, 0, nil, time.Time{}, v.Now()
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

// look looks how the hosts stand.
func (v *drive) look(ctx context.Context, r *rollout.Rollout) {
	now := v.Now()
	full := v.hosts == nil || now.Sub(v.looked) >= fully
	if full {
		v.looked = now
	}
	v.hosts = v.Hosts(ctx, r, v.hosts, full)
	over := v.Now()
	v.rested = over.Add(max(leastBreath, min(lookShare*over.Sub(now), mostBreath)))
	v.changed, v.others = v.parted(r)
	v.making = v.making[:0]
	for name, h := range v.hosts {
		if h.State != Changing {
			delete(v.since, name)
			continue
		}
		v.making = append(v.making, name)
		if v.since[name].IsZero() {
			v.since[name] = now
		}
		if now.Sub(v.since[name]) >= v.Answer {
			h.Soon, h.Trouble = false, fmt.Sprintf("it has not said within %s what became of the change", v.Answer)
			v.hosts[name] = h
		}
	}
}

// parted are the names of the hosts that are to have the change, and of others to hold them against.
func (v *drive) parted(r *rollout.Rollout) (changed, others []string) {
	for name, h := range v.hosts {
		if h.Stage < r.Begun {
			changed = append(changed, name)
		} else {
			others = append(others, name)
		}
	}
	slices.Sort(changed)
	slices.Sort(others)
	if r.Begun > 0 {
		others = others[:min(len(others), mostOthers)]
	}
	return changed, others
}

// sample has the hosts asked what they have counted, when it is time for that, and takes in what they said.
func (v *drive) sample(ctx context.Context, r *rollout.Rollout) {
	select {
	case s := <-v.sampled:
		if v.asking, v.took = false, s.took; s.round == v.round {
			v.watch.Add(s.at, v.troubled(s.hosts))
		}
	default:
	}
	if v.asking || v.Now().Before(v.due(r)) {
		return
	}
	names := slices.Concat(v.changed, v.others)
	round, switches, at := v.round, r.Switches, v.Now()
	v.asking, v.last = true, at
	v.samples++
	go func() {
		said := v.Vitals(ctx, names, switches)
		v.sampled <- sample{round, at, v.Now().Sub(at), said}
	}()
}

// due is when the hosts are to be asked next.
func (v *drive) due(r *rollout.Rollout) time.Time {
	switch {
	case v.samples == 0 && r.Begun > 0 && r.Settled.IsZero() && !v.anewAt.IsZero():
		// They are asked anew as soon as all have the change, and until then they are busy with it.
		return v.anewAt.Add(min(v.watch.Every(), early))
	case v.samples == 0:
		return time.Time{}
	case r.Begun == 0:
		return v.last.Add(r.Watch - v.lead(r.Watch))
	}
	next := v.last.Add(v.every())
	left, ok := r.Left(v.Now())
	if !ok || left == 0 {
		return next
	}
	end := v.Now().Add(left)
	switch final := end.Add(-v.lead(v.every())); {
	case !next.After(final):
		return next
	case v.last.Before(final):
		return final
	}
	return end.Add(v.every()) // what is asked for now would come too late for the stage
}

// every is how often the hosts are asked: less often where that takes long, but twice in the time over which they are
// compared.
func (v *drive) every() time.Duration {
	return max(v.watch.Every(), min(askShare*v.took, v.watch.Every()*3/2))
}

// lead is how long before the end of a time the hosts are asked the last time, so that their answers are there at the
// end: twice what they took the last time, and no more than half of every.
func (v *drive) lead(every time.Duration) time.Duration { return min(2*v.took+leastBreath, every/2) }

// troubled adds to what hosts counted how they stand.
func (v *drive) troubled(hosts map[string]rollout.Vitals) map[string]rollout.Vitals {
	for name, h := range v.hosts {
		one, ok := hosts[name]
		if one.Trouble = h.Trouble; h.Soon {
			one.Trouble = ""
		}
		if ok || h.Trouble != "" {
			hosts[name] = one
		}
	}
	return hosts
}

// seen is what a step rests on.
func (v *drive) seen(ctx context.Context, r *rollout.Rollout) (s rollout.Seen, err error) {
	s.Epoch = v.Epoch
	for _, h := range v.hosts {
		if h.Stage == r.Begun-1 {
			s.Own++
			if h.State == Changed {
				s.Changed++
			}
		}
		if h.Stage < r.Begun && h.Soon {
			s.Pending++
		}
	}
	if r.Begun > 0 {
		s.Found, s.Looked = v.watch.Found(v.changed, v.others)
		return s, nil
	}
	if v.known {
		s.Looked = true
		return s, nil
	}
	usual, known := v.watch.Usual(v.others, r.Watch/2)
	if !known {
		return s, nil
	}
	if err := v.KeepUsual(ctx, v.id, usual); err != nil {
		return s, err
	}
	v.watch.Knows(usual)
	v.known, s.Looked = true, true
	return s, nil
}

// wait is how long there is nothing to do.
func (v *drive) wait() time.Duration {
	left := fully
	if !v.asking {
		left = min(left, v.due(&v.now).Sub(v.Now()))
	}
	if over, ok := v.now.Left(v.Now()); ok && over > 0 {
		left = min(left, over)
	}
	return left
}

// pause returns when hosts may stand otherwise, when they have said what they counted, or after a time.
func (v *drive) pause(ctx context.Context, changed <-chan struct{}, most time.Duration) {
	over := time.NewTimer(max(most, leastBreath))
	defer over.Stop()
	for {
		select {
		case s := <-v.sampled:
			v.sampled <- s
			return
		case <-changed:
		case <-over.C:
			return
		case <-ctx.Done():
			return
		}
		changed = v.Changed()
		if v.making = v.Unanswered(v.making); len(v.making) == 0 {
			break
		}
	}
	select { // what comes together is looked at together
	case <-time.After(v.rested.Sub(v.Now())):
	case <-ctx.Done():
	}
}
