package store

import (
	"context"
	"errors"
	"testing"
)

// made is a claim of one run of an agent.
func made(conversation, number uint64) Claim {
	return Claim{Run: "run", Conversation: conversation, Number: number}
}

// begun is the first claim of a start of an agent.
func begun(run string, n uint64) Claim {
	return Claim{Run: run, Conversation: 1, Number: 1, Begun: n}
}

// lateRelease is a release whose transaction is made now, and which etcd carries out when it is told to.
func lateRelease(t *testing.T, s *Store, r ReleaseRequest) (carryOut func() bool) {
	t.Helper()
	v := newView(func(key string) entry {
		e, _ := s.known(key)
		return e
	})
	var first *Binding
	if err := (&tx{view: v, keys: s.keys, mem: s.mem}).release(&r, &first); err != nil {
		t.Fatal(err)
	}
	compare, write, read := v.txn()
	return func() bool {
		t.Helper()
		resp, err := s.client.Txn(patient(t)).If(compare...).Then(write...).Else(read...).Commit()
		if err != nil {
			t.Fatal(err)
		}
		return resp.Succeeded
	}
}

// A release whose transaction etcd carries out late, and one that is made again on what has changed meanwhile, leave
// the port to who has claimed it again, though the binding is the same.
func TestS79_ALateReleaseLeavesThePortToAClaimThatCameAfterIt(t *testing.T) {
	s := openNew(t)
	withGroup(t, s, web, 3)
	r := ClaimRequest{PortGroup: web, Binding: nic("a", "vm1")}
	r.MAC, r.Claim = "02:00:00:00:00:01", made(1, 1)
	p := claim(t, s, r)
	bound := func(what string, want Claim) {
		t.Helper()
		if got, _ := s.GetPort(web, p.ID); got.Binding == nil || got.Binding.Claim != want {
			t.Fatalf("%s: the port is bound to %+v", what, got.Binding)
		}
	}
	late := ReleaseRequest{PortGroup: web, Port: p.ID, VM: "vm1", Adapter: "net0", Host: "a", Claim: made(1, 2)}
	carryOut := lateRelease(t, s, late)
	again := r
	again.Claim = made(2, 1) // by way of another controller
	if got := claim(t, s, again); got.ID != p.ID {
		t.Fatalf("it gets port %s, and had %s", got.ID, p.ID)
	}
	if carryOut() {
		t.Error("etcd carries the late release out")
	}
	var taken *Taken
	if err := s.Release(patient(t), late); !errors.As(err, &taken) {
		t.Errorf("the release, made again: %v", err)
	}
	bound("after late releases", made(2, 1))

	r.Claim = made(1, 1)
	if got := claim(t, s, r); got.ID != p.ID {
		t.Errorf("a late claim gets port %s", got.ID)
	}
	bound("after a late claim", made(2, 1))

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	var away *Unavailable
	late.Claim = made(2, 2)
	if err := s.Release(gone, late); !errors.As(err, &away) {
		t.Errorf("a release that nobody waits for: %v", err)
	}
	bound("after a release that nobody waits for", made(2, 1))
	if err := s.Release(patient(t), late); err != nil {
		t.Errorf("a release that came after the claim: %v", err)
	}
	carryOut = lateRelease(t, s, ReleaseRequest{PortGroup: web, Port: claim(t, s, r).ID, VM: "vm1", Adapter: "net0"})
	claim(t, s, r) // by an agent that says nothing else than before
	if carryOut() {
		t.Error("etcd carries the late release of an agent out that numbers no claims")
	}
}

// What a host's agent asked one controller for before it died, and what that controller carries out only after the next
// start of the agent has claimed the port by another one, leaves the port to that claim: a release as well as a claim.
func TestS79_ADeadAgentsLateReleaseLeavesThePortToTheNextStart(t *testing.T) {
	s := openNew(t)
	withGroup(t, s, web, 3)
	first, second := beside(t, s), beside(t, s)
	r := ClaimRequest{PortGroup: web, Binding: nic("a", "vm1")}
	r.Claim = begun("before", 1)
	p := claim(t, first, r)
	bound := func(what string, want Claim) {
		t.Helper()
		if err := first.Sync(patient(t)); err != nil {
			t.Fatal(err)
		}
		if got, _ := first.GetPort(web, p.ID); got.Binding == nil || got.Binding.Claim != want {
			t.Fatalf("%s: the port is bound to %+v", what, got.Binding)
		}
	}
	again := r
	again.Claim = begun("next", 2)
	if got := claim(t, second, again); got.ID != p.ID {
		t.Fatalf("the next start gets port %s, and had %s", got.ID, p.ID)
	}
	bound("before the late release", again.Claim) // the first controller knows of it when it begins
	late := ReleaseRequest{PortGroup: web, Port: p.ID, VM: "vm1", Adapter: "net0", Host: "a", Claim: begun("before", 1)}
	late.Claim.Number = 2
	var taken *Taken
	if err := first.Release(patient(t), late); !errors.As(err, &taken) {
		t.Errorf("the late release: %v", err)
	}
	bound("after the late release", again.Claim)
	if got := claim(t, first, r); got.ID != p.ID {
		t.Errorf("a late claim gets port %s", got.ID)
	}
	bound("after a late claim", again.Claim)
	late.Claim = begun("after", 3)
	if err := first.Release(patient(t), late); err != nil {
		t.Errorf("a release of a start that came after it: %v", err)
	}
}

// Which releases are carried out: those of the binding that is meant, of what the same run claimed before, and those of
// agents and controllers that say nothing of it.
func TestS79_AReleaseIsOfTheBindingThatWasMeant(t *testing.T) {
	has := func(c Claim) *Binding {
		b := nic("a", "vm1")
		b.Claim = c
		return &b
	}
	for _, c := range []struct {
		name  string
		bound *Binding
		of    Claim
		was   *Binding
		yes   bool
	}{
		{"of a claim before", has(made(1, 1)), made(1, 2), nil, true},
		{"of a claim in a conversation before", has(made(1, 9)), made(2, 1), nil, true},
		{"a claim came after it", has(made(1, 3)), made(1, 2), nil, false},
		{"a claim came after it, in the next conversation", has(made(2, 1)), made(1, 2), nil, false},
		{"the agent has started anew", has(Claim{Run: "old", Conversation: 7, Number: 7}), made(1, 1), nil, true},
		{"of a start before", has(begun("old", 1)), begun("new", 2), nil, true},
		{"a later start has claimed it", has(begun("new", 2)), begun("old", 1), nil, false},
		{"the start before has no number", has(Claim{Run: "old", Number: 3}), begun("new", 2), nil, true},
		{"the later start has no number", has(begun("old", 1)), Claim{Run: "new", Number: 3}, nil, true},
		{"nobody has said what claim it is of", has(Claim{}), made(1, 1), nil, true},
		{"nobody says what it releases", has(made(1, 1)), Claim{}, nil, true},
		{"an operator's", has(made(1, 1)), Claim{}, has(made(1, 1)), true},
		{"an operator's of a binding before", has(made(1, 2)), Claim{}, has(made(1, 1)), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ReleaseRequest{VM: "vm1", Adapter: "net0", Host: "a", Claim: c.of, Was: c.was}
			if got := r.of(c.bound); got != c.yes {
				t.Error(got)
			}
		})
	}
}

// What a binding says that ends with it is not kept for the one that takes its place.
func TestABindingThatMovesTakesNoGenerationAlong(t *testing.T) {
	s := openNew(t)
	withGroup(t, s, web, 3)
	r := ClaimRequest{PortGroup: web, Binding: nic("a", "vm1")}
	r.Generation, r.Claim = 5, made(1, 1)
	p := claim(t, s, r)
	claim(t, s, ClaimRequest{PortGroup: web, Binding: nic("b", "vm1"), Move: true})
	if got, _ := s.GetPort(web, p.ID); *got.Binding != nic("b", "vm1") {
		t.Errorf("bound to %+v", *got.Binding)
	}
}
