package store

import (
	"errors"
	"fmt"
	"sync"
	"testing"
)

// A port group is deleted with its ports left behind only while nobody has one of them.
func TestAPortGroupThatLeavesItsPortsHasNoneBound(t *testing.T) {
	s := openNew(t)
	withGroup(t, s, web, 40)
	withGroup(t, s, "dvs/db", 2)
	p := claim(t, s, ClaimRequest{PortGroup: web, Binding: nic("h", "vm1")})
	deletion := func(unbound ...string) []Change {
		return []Change{{Key: Key{KindPortGroup, web}, Delete: true, IfVersion: Any, LeavesPorts: true,
			Unbound: unbound}}
	}
	for name, groups := range map[string][]string{"alone": {web}, "with another": {"dvs/db", web}} {
		t.Run(name, func(t *testing.T) {
			var used *InUse
			if _, err := s.Write(patient(t), deletion(groups...)); !errors.As(err, &used) || *used != (InUse{web, 1}) {
				t.Errorf("%v, want that one port of %s is in use", err, web)
			}
		})
	}
	if err := s.Release(patient(t), ReleaseRequest{PortGroup: web, Port: p.ID, VM: "vm1", Adapter: "net0",
		Host: "h"}); err != nil {
		t.Fatal(err)
	}
	write(t, s, deletion(web)...)
	var none *NotFound
	if _, err := s.Claim(patient(t), ClaimRequest{PortGroup: web, Binding: nic("h", "vm2")}); !errors.As(err, &none) {
		t.Errorf("a claim of a port that is left behind: %v", err)
	}
	if err := s.RemovePorts(patient(t), web, true, nil); err != nil {
		t.Fatal(err)
	}
	if left := ports(t, s, web); len(left) != 0 {
		t.Errorf("%d ports are left", len(left))
	}
}

// Of a claim and a deletion that are made at once by two controllers one is refused: no port of a group that is gone is
// bound.
func TestAClaimAndADeletionNeverBothHappen(t *testing.T) {
	s := openNew(t)
	other := beside(t, s)
	for round := range 30 {
		group := fmt.Sprintf("dvs/g%d", round)
		withGroup(t, s, group, 4)
		var claimed, deleted error
		var both sync.WaitGroup
		both.Go(func() {
			_, claimed = other.Claim(patient(t), ClaimRequest{PortGroup: group, Binding: nic("h", group)})
		})
		both.Go(func() {
			_, deleted = s.Write(patient(t), []Change{{Key: Key{KindPortGroup, group}, Delete: true, IfVersion: Any,
				LeavesPorts: true, Unbound: []string{group}}})
		})
		both.Wait()
		var used *InUse
		if (claimed == nil) == (deleted == nil) || deleted != nil && !errors.As(deleted, &used) {
			t.Fatalf("round %d: claim: %v; deletion: %v", round, claimed, deleted)
		}
	}
}

// What rests on an object that is another by now touches no port.
func TestPortsAreLeftAloneOnceTheirReasonIsAnother(t *testing.T) {
	s := openNew(t)
	withGroup(t, s, web, 4)
	why := Key{"why", "current"}
	at := write(t, s, put(why.Kind, why.Name, `{}`, New))
	write(t, s, put(why.Kind, why.Name, `{"a":1}`, at))
	var conflict *Conflict
	guard := &Change{Key: why, IfVersion: at}
	if err := s.Resize(patient(t), web, 8, guard); !errors.As(err, &conflict) {
		t.Errorf("resized: %v", err)
	}
	if err := s.RemovePorts(patient(t), web, true, guard); !errors.As(err, &conflict) {
		t.Errorf("removed: %v", err)
	}
	if n := len(ports(t, s, web)); n != 4 {
		t.Errorf("%d ports, want 4", n)
	}
}
