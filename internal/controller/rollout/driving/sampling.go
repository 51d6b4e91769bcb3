package driving

import (
	"context"
	"slices"
	"time"

	"heddle/internal/controller/rollout"
)

// Times of questions what hosts have counted.
const (
	// askShare times what hosts take to answer lies between two questions, where there is time for it.
	askShare = 4
	// early is when hosts of a stage that just began are asked at the latest, while not all of them have the change.
	early = time.Second
)

// sample is what hosts have counted.
type sample struct {
	round int
	at    time.Time
	took  time.Duration
	hosts map[string]rollout.Vitals
}

// sample has the hosts asked what they have counted, when it is time for that, and takes in what they said.
func (v *drive) sample(ctx context.Context, r *rollout.Rollout) {
	select {
	case s := <-v.sampled:
		if v.asking, v.took = false, s.took; s.round == v.round {
			v.watch.Add(s.at, v.troubled(v.quieted(s)))
		}
	default:
	}
	if v.asking || v.Now().Before(v.due(r)) {
		return
	}
	names := slices.Concat(v.changed, v.others)
	round, switches, at := v.round, r.Switches, v.Now()
	left, ok := r.Left(at)
	v.asking, v.last, v.finally = true, at, ok && r.Begun > 0 && left <= v.lead(v.every())
	v.samples++
	ctx, v.unask = context.WithCancel(ctx)
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
	case r.Begun == 0 && v.samples > 1: // which is enough, unless hosts are away that long
		return v.last.Add(r.Watch)
	case r.Begun == 0:
		return v.last.Add(r.Watch - min(v.lead(r.Watch), r.Watch/2))
	}
	next := v.last.Add(v.every())
	left, ok := r.Left(v.Now())
	switch {
	case ok && left == 0 && !v.finally: // the stage waits for it
		return v.watch.Full()
	case !ok || left == 0:
		return next
	}
	end := v.Now().Add(left)
	switch final := end.Add(-v.lead(v.every())); {
	case v.finally: // what is asked for now would come too late for the stage
		return end.Add(v.every())
	case !next.Add(v.took).After(final):
		return next
	case v.watch.Full().After(final): // sooner it could not be compared
		return v.watch.Full()
	default:
		return final
	}
}

// every is how often the hosts are asked: less often where that takes long, but once in the time over which they are
// compared.
func (v *drive) every() time.Duration {
	return max(v.watch.Every(), min(askShare*v.took, v.watch.Window()))
}

// lead is how long before the end of a time the hosts are asked the last time, so that their answers are there at the
// end: half as long again as they took the last time, and no more than every.
func (v *drive) lead(every time.Duration) time.Duration { return min(v.took*3/2+leastBreath, every) }
