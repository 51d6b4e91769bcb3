package lacp

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// pair is two LAGs whose members of the same name are connected by cables. Frames are delayed, and some are lost.
type pair struct {
	t       *rapid.T
	now     time.Time
	ends    [2]*LAG
	next    [2]time.Time
	flight  []flying
	delay   time.Duration
	lose    func() bool
	cut     map[string]bool
	last    [2]map[string]State // the flags that each end last received, by member
	wrongAt map[string]time.Time
	patient time.Duration // how long one end may send to the other, which is not collecting, before it can know
}

type flying struct {
	to     int
	at     time.Time
	member string
	pdu    PDU
}

func (p *pair) take(end int, fx Effects) {
	p.next[end] = fx.Next
	for _, f := range fx.Send {
		pdu, _, err := Decode(f.Payload)
		if err != nil {
			p.t.Fatal(err)
		}
		if !p.cut[f.Member] && !p.lose() {
			p.flight = append(p.flight, flying{1 - end, p.now.Add(p.delay), f.Member, *pdu})
		}
	}
	p.check()
}

// check checks the promises that hold at every instant.
func (p *pair) check() {
	status := [2]Status{p.ends[0].Status(), p.ends[1].Status()}
	for end, s := range status {
		for i, m := range s.Members {
			heard := p.last[end][m.Name]
			if m.Actor.State.has(Distributing) && !heard.has(Synchronization|Collecting) {
				p.t.Fatalf("end %d sends on %s, whose partner last said %s", end, m.Name, heard)
			}
			key := fmt.Sprint(end, m.Name)
			if !m.Actor.State.has(Distributing) || status[1-end].Members[i].Actor.State.has(Collecting) {
				delete(p.wrongAt, key)
				continue
			}
			since, known := p.wrongAt[key]
			if !known {
				p.wrongAt[key] = p.now
			} else if p.now.Sub(since) > p.patient {
				p.t.Fatalf("end %d has sent on %s for %s while its partner takes nothing", end, m.Name,
					p.now.Sub(since))
			}
		}
	}
}

func (p *pair) carrier(member string, up bool) {
	p.cut[member] = !up
	p.flight = slices.DeleteFunc(p.flight, func(f flying) bool { return f.member == member && !up })
	for end, l := range p.ends {
		p.take(end, l.Step(p.now, Carrier{Member: member, Up: up}))
	}
}

// run lets time pass.
func (p *pair) run(d time.Duration) {
	until := p.now.Add(d)
	for {
		at := until
		for _, t := range []time.Time{p.next[0], p.next[1]} {
			if !t.IsZero() && t.Before(at) {
				at = t
			}
		}
		k := -1
		for i, f := range p.flight {
			if !f.at.After(at) && (k < 0 || f.at.Before(p.flight[k].at)) {
				k = i
			}
		}
		if k >= 0 {
			f := p.flight[k]
			p.flight = slices.Delete(p.flight, k, k+1)
			p.now = f.at
			p.last[f.to][f.member] = f.pdu.Actor.State
			p.take(f.to, p.ends[f.to].Step(p.now, Received{Member: f.member, PDU: f.pdu}))
			continue
		}
		p.now = at
		if at.Equal(until) {
			return
		}
		for end, l := range p.ends {
			if !p.next[end].IsZero() && !p.next[end].After(at) {
				p.take(end, l.Step(p.now, Tick{}))
			}
		}
	}
}

func drawPair(t *rapid.T) (*pair, []string) {
	names := []string{"a", "b", "c", "d"}[:rapid.IntRange(1, 4).Draw(t, "links")]
	p := &pair{t: t, now: epoch, cut: map[string]bool{}, wrongAt: map[string]time.Time{}, lose: func() bool {
		return false
	},
		delay: time.Duration(rapid.IntRange(0, 50).Draw(t, "delay ms")) * time.Millisecond}
	p.patient = shortTimeout + fastPeriod + 2*p.delay
	for end := range p.ends {
		cfg := config(byte(end+1), names...)
		cfg.Active = end == 0 || rapid.Bool().Draw(t, "active")
		cfg.Fast = rapid.Bool().Draw(t, "fast")
		if !cfg.Fast {
			p.patient = longTimeout + fastPeriod + 2*p.delay
		}
		p.ends[end], p.last[end] = New(cfg), map[string]State{}
	}
	return p, names
}

// Whatever frames are lost and whichever links go down and up: when all cables work again, both ends use the same
// members, all of them, and before that neither end sends to a partner that is not collecting.
func TestPair_BothEndsUseTheSameMembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, names := drawPair(t)
		up := map[string]bool{}
		lossy := rapid.IntRange(0, 100).Draw(t, "loss %")
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			name := rapid.SampledFrom(names).Draw(t, "link")
			if rapid.Bool().Draw(t, "changes") {
				up[name] = !up[name]
				p.carrier(name, up[name])
			}
			dice := rapid.SliceOfN(rapid.IntRange(0, 99), 8, 8).Draw(t, "dice")
			k := 0
			p.lose = func() bool { k++; return dice[k%len(dice)] < lossy }
			p.run(time.Duration(rapid.IntRange(1, 20_000).Draw(t, "ms")) * time.Millisecond)
		}
		p.lose = func() bool { return false }
		p.run(longTimeout + slowPeriod + 10*time.Second)
		a, b := p.ends[0].Status(), p.ends[1].Status()
		for i, name := range names {
			if a.Members[i].Usable != up[name] || b.Members[i].Usable != up[name] {
				t.Fatalf("link %s up %v: used %v (%s) and %v (%s)", name, up[name], a.Members[i].Usable,
					a.Members[i].Reason, b.Members[i].Usable, b.Members[i].Reason)
			}
		}
	})
}

// How fast two ends that agree are, on cables without losses.
func TestPair_FormsWithinFiveSecondsAndLosesALinkAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, names := drawPair(t)
		for _, n := range names {
			p.carrier(n, true)
		}
		p.run(5 * time.Second)
		for _, l := range p.ends {
			for _, m := range l.Status().Members {
				if !m.Usable {
					t.Fatalf("after 5 s: %s: %s", m.Name, m.Reason)
				}
			}
		}
		p.carrier(names[0], false)
		for _, l := range p.ends {
			for i, m := range l.Status().Members {
				if m.Usable != (i > 0) {
					t.Fatalf("%s usable: %v", m.Name, m.Usable)
				}
			}
		}
	})
}

// A restart that ends within the partner's timeout changes nothing at the other end (and so loses no frame).
func TestPair_ARestartIsNotSeenByThePartner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, names := drawPair(t)
		for _, n := range names {
			p.carrier(n, true)
		}
		p.run(10 * time.Second)
		// The last PDU before the end restarts the partner's timeout.
		p.take(0, p.ends[0].Refresh(p.now))
		saved, cfg := p.ends[0].Snapshot(), p.ends[0].cfg
		p.next[0] = time.Time{}
		p.run(time.Duration(rapid.IntRange(0, 1900).Draw(t, "away ms")) * time.Millisecond)
		p.ends[0] = New(cfg)
		p.take(0, p.ends[0].Restore(p.now, saved))
		for range 20 {
			for end, l := range p.ends {
				for _, m := range l.Status().Members {
					if !m.Usable {
						t.Fatalf("end %d: %s: %s", end, m.Name, m.Reason)
					}
				}
			}
			p.run(500 * time.Millisecond)
		}
	})
}
