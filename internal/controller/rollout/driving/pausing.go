package driving

import (
	"context"
	"time"
)

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
	rest := time.NewTimer(v.rested.Sub(v.Now()))
	defer rest.Stop()
	select { // what comes together is looked at together
	case s := <-v.sampled:
		v.sampled <- s
	case <-rest.C:
	case <-over.C:
	case <-ctx.Done():
	}
}
