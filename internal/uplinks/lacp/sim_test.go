package lacp

import (
	"slices"
	"testing"
	"time"

	"heddle/internal/plan"
)

// epoch is the time at which every simulation begins.
var epoch = time.Unix(1_000_000, 0)

// bench is one LAG under test with a clock of its own.
type bench struct {
	t    testing.TB
	l    *LAG
	now  time.Time
	sent []Frame // since the last call
	next time.Time
}

func system(n byte) System {
	return System{Priority: 32768, MAC: plan.MAC{2, 0, 0, 0, 0, n}}
}

func config(n byte, members ...string) Config {
	c := Config{System: system(n), Key: 7, Active: true, Fast: true, Fallback: FallbackNone}
	for i, name := range members {
		c.Members = append(c.Members, Member{Name: name, Port: Port{Priority: 255, Number: uint16(i + 1)}})
	}
	return c
}

func newBench(t testing.TB, cfg Config) *bench {
	return &bench{t: t, l: New(cfg), now: epoch}
}

func (b *bench) take(fx Effects) {
	b.sent = append(b.sent, fx.Send...)
	b.next = fx.Next
}

func (b *bench) step(e Event) { b.take(b.l.Step(b.now, e)) }

func (b *bench) up(members ...string) {
	for _, m := range members {
		b.step(Carrier{Member: m, Up: true})
	}
}

// pass lets time pass, with a Tick whenever the machine asks for one.
func (b *bench) pass(d time.Duration) {
	end := b.now.Add(d)
	for !b.next.IsZero() && !b.next.After(end) {
		b.now = b.next
		b.step(Tick{})
		if b.next.Equal(b.now) {
			b.t.Fatalf("a Tick is due again at the same instant, %s", b.now)
		}
	}
	b.now = end
	b.step(Tick{})
}

// pdus returns what was sent on a member since the last call.
func (b *bench) pdus(member string) []PDU {
	b.t.Helper()
	var out []PDU
	for _, f := range b.sent {
		if f.Member != member {
			continue
		}
		p, _, err := Decode(f.Payload)
		if err != nil || p == nil {
			b.t.Fatalf("sent what cannot be read: %v", err)
		}
		out = append(out, *p)
	}
	b.sent = slices.DeleteFunc(b.sent, func(f Frame) bool { return f.Member == member })
	return out
}

func (b *bench) status(member string) MemberStatus {
	b.t.Helper()
	for _, m := range b.l.Status().Members {
		if m.Name == member {
			return m
		}
	}
	b.t.Fatalf("no member %s", member)
	return MemberStatus{}
}

// usable returns the names of the usable members.
func (b *bench) usable() []string {
	names := []string{}
	for _, m := range b.l.Status().Members {
		if m.Usable {
			names = append(names, m.Name)
		}
		if m.Usable != m.Reason.None() {
			b.t.Fatalf("member %s: usable %v for the reason %q", m.Name, m.Usable, m.Reason)
		}
	}
	return names
}

const allGood = Activity | ShortTimeout | Aggregation | Synchronization | Collecting | Distributing

// answer returns what partner n, which agrees with everything, sends on a member.
func (b *bench) answer(n byte, member string, s State) PDU {
	own := b.status(member).Actor
	return PDU{Actor: Info{System: system(n), Key: 3, Port: Port{Priority: 1, Number: own.Port.Number + 100}, State: s},
		Partner: own}
}

func (b *bench) hear(n byte, member string, s State) {
	b.step(Received{Member: member, PDU: b.answer(n, member, s)})
}

// join brings members into the LAG with partner n, in the steps of a real partner: waiting, attached, distributing.
func (b *bench) join(n byte, members ...string) {
	b.t.Helper()
	b.up(members...)
	for _, m := range members {
		b.hear(n, m, allGood&^(Synchronization|Collecting|Distributing))
	}
	b.pass(aggregateWait)
	for _, m := range members {
		b.hear(n, m, allGood)
		if s := b.status(m); s.Mux != string(muxDistributing) {
			b.t.Fatalf("member %s is %s: %s", m, s.Mux, s.Reason)
		}
	}
	b.sent = nil
}
