package lacp

import (
	"testing"
	"time"
)

// Every transition of the receive machine, as a path of events from the start: + and - are carrier, p is a PDU, a
// number is seconds.
func TestReceiveMachine(t *testing.T) {
	type step struct {
		do   string
		want rxState
	}
	for _, c := range []struct {
		name  string
		fast  bool
		steps []step
	}{
		{"without carrier nothing happens", true, []step{{"p", rxDisabled}, {"100", rxDisabled}, {"-", rxDisabled}}},
		{"carrier, silence", true, []step{{"+", rxExpired}, {"2", rxExpired}, {"1", rxDefaulted},
			{"1000", rxDefaulted}}},
		{"carrier, silence, although slow", false, []step{{"+", rxExpired}, {"2", rxExpired}, {"1", rxDefaulted}}},
		{"carrier lost while expired", true, []step{{"+", rxExpired}, {"-", rxDisabled}, {"3", rxDisabled},
			{"+", rxExpired}}},
		{"carrier lost while defaulted", true, []step{{"+", rxExpired}, {"3", rxDefaulted}, {"-", rxDisabled}}},
		{"carrier lost while current", true, []step{{"+", rxExpired}, {"p", rxCurrent}, {"-", rxDisabled},
			{"+", rxExpired}}},
		{"a partner that stays", true, []step{{"+", rxExpired}, {"p", rxCurrent}, {"2", rxCurrent}, {"p", rxCurrent},
			{"2", rxCurrent}}},
		{"a partner that goes, fast", true, []step{{"+", rxExpired}, {"p", rxCurrent}, {"3", rxExpired},
			{"2", rxExpired}, {"1", rxDefaulted}}},
		{"a partner that goes, slow", false, []step{{"+", rxExpired}, {"p", rxCurrent}, {"89", rxCurrent},
			{"1", rxExpired}, {"3", rxDefaulted}}},
		{"a partner that returns in time", true, []step{{"+", rxExpired}, {"p", rxCurrent}, {"4", rxExpired},
			{"p", rxCurrent}}},
		{"a partner that returns later", true, []step{{"+", rxExpired}, {"p", rxCurrent}, {"60", rxDefaulted},
			{"p", rxCurrent}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := config(1, "a")
			cfg.Fast = c.fast
			b := newBench(t, cfg)
			for i, s := range c.steps {
				switch s.do {
				case "+", "-":
					b.step(Carrier{Member: "a", Up: s.do == "+"})
				case "p":
					b.hear(2, "a", allGood)
				default:
					d, err := time.ParseDuration(s.do + "s")
					if err != nil {
						t.Fatal(err)
					}
					b.pass(d)
				}
				if got := b.status("a").Receive; got != string(s.want) {
					t.Fatalf("step %d (%s): %s, want %s", i, s.do, got, s.want)
				}
			}
		})
	}
}

// The flags of actor and partner in each state (802.1AX 6.4.12).
func TestReceiveMachine_Flags(t *testing.T) {
	b := newBench(t, config(1, "a"))
	expect := func(when string, flags State, want bool) {
		t.Helper()
		if got := b.status("a").Actor.State&flags != 0; got != want {
			t.Errorf("%s: flags %q set: %v", when, flags.Words(), got)
		}
	}
	b.up("a")
	expect("expired", Expired, true)
	expect("expired at first", Defaulted, true)
	b.hear(2, "a", allGood)
	expect("current", Expired|Defaulted, false)
	if p := b.status("a").Partner; p.System != system(2) || p.Key != 3 || p.Port.Number != 101 {
		t.Errorf("partner %+v", p)
	}
	b.step(Carrier{Member: "a"})
	if p := b.status("a").Partner; p.State.has(Synchronization) || p.System != system(2) {
		t.Errorf("without carrier: partner %+v", p)
	}
	b.up("a")
	b.hear(2, "a", allGood)
	b.pass(shortTimeout)
	expect("expired", Expired, true)
	expect("expired", Defaulted, false)
	if p := b.status("a").Partner; p.State.has(Synchronization) || p.System != system(2) {
		t.Errorf("expired: partner %+v", p)
	}
	b.pass(shortTimeout)
	expect("defaulted", Defaulted, true)
	expect("defaulted", Expired, false)
	if p := b.status("a").Partner; !p.System.MAC.IsZero() {
		t.Errorf("defaulted: partner %+v", p)
	}
}

// If the caller was away for long, both timeouts have passed.
func TestReceiveMachine_ManyTimeoutsAtOnce(t *testing.T) {
	b := newBench(t, config(1, "a"))
	b.join(2, "a")
	b.now = b.now.Add(time.Hour)
	b.step(Tick{})
	if s := b.status("a"); s.Receive != string(rxDefaulted) || s.Usable {
		t.Errorf("an hour later: %s, usable %v", s.Receive, s.Usable)
	}
}

func TestInSync(t *testing.T) {
	own := Info{System: system(1), Key: 7, Port: Port{255, 1}, State: Activity | Aggregation}
	good := PDU{Actor: Info{System: system(2), Key: 3, State: allGood}, Partner: own}
	for _, c := range []struct {
		name string
		edit func(*PDU, *Info)
		want bool
	}{
		{"agreed", func(*PDU, *Info) {}, true},
		{"partner not attached", func(p *PDU, _ *Info) { p.Actor.State &^= Synchronization }, false},
		{"partner thinks of another system", func(p *PDU, _ *Info) { p.Partner.System = system(9) }, false},
		{"another system priority", func(p *PDU, _ *Info) { p.Partner.System.Priority++ }, false},
		{"another key", func(p *PDU, _ *Info) { p.Partner.Key++ }, false},
		{"another port", func(p *PDU, _ *Info) { p.Partner.Port.Number++ }, false},
		{"another port priority", func(p *PDU, _ *Info) { p.Partner.Port.Priority++ }, false},
		{"partner takes us for individual", func(p *PDU, _ *Info) { p.Partner.State &^= Aggregation }, false},
		{"an individual partner need not know us", func(p *PDU, _ *Info) {
			p.Actor.State &^= Aggregation
			p.Partner = Info{}
		}, true},
		{"passive partner, we speak", func(p *PDU, _ *Info) { p.Actor.State &^= Activity }, true},
		{"both passive", func(p *PDU, own *Info) {
			p.Actor.State &^= Activity
			own.State &^= Activity
			p.Partner = *own
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, me := good, own
			c.edit(&p, &me)
			if got := inSync(me, p); got != c.want {
				t.Errorf("%s: in sync %v", c.name, got)
			}
		})
	}
}
