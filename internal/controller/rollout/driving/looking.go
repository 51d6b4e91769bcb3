package driving

import (
	"context"
	"fmt"
	"slices"
	"time"

	"heddle/internal/controller/rollout"
)

// Times of looks at the hosts.
const (
	// While hosts make the change, a look follows the one before after as long as that took, times how many looks there
	// were since the stage began, up to lookShare; from leastBreath to mostBreath. Otherwise after mostBreath.
	lookShare   = 10
	leastBreath = 10 * time.Millisecond
	mostBreath  = 100 * time.Millisecond
	// fully is how often it looks at all hosts.
	fully = 2 * time.Second
	// answers is how long a host may take to make the change.
	answers = time.Minute
	// mostOthers is how many hosts without the change are looked at for comparison.
	mostOthers = 200
)

// look looks how the hosts stand.
func (v *drive) look(ctx context.Context, r *rollout.Rollout) {
	now := v.Now()
	full := v.hosts == nil || now.Sub(v.looked) >= fully
	if full {
		v.looked = now
	}
	v.hosts = v.Hosts(ctx, r, v.hosts, full)
	over := v.Now()
	v.looks++
	v.changed, v.others = v.parted(r)
	v.making = v.making[:0]
	awaited := false
	for name, h := range v.hosts {
		awaited = awaited || h.Soon
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
	v.rested = over.Add(mostBreath)
	if awaited {
		v.rested = over.Add(max(leastBreath, min(over.Sub(now)*time.Duration(min(v.looks, lookShare)), mostBreath)))
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
		s.Unheard = v.unheard()
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
