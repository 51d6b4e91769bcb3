package access

import (
	"fmt"
	"testing"

	"heddle/internal/identity"
	"heddle/internal/platform/access/roles"
	"heddle/internal/platform/pki"
)

// asker is a caller with a token, or of a person, at an address.
func asker(r *pki.APIRecord, from string, role roles.Role) Caller {
	return Caller{Token: r, From: from, Access: roles.NewAccess(roles.Grant{Role: role})}
}

// However many places a caller, an address or all take, those with another token, at another address and who manages
// the cluster have theirs.
func TestS135_NobodyTakesAllPlaces(t *testing.T) {
	token := func(i int) *pki.APIRecord { return &pki.APIRecord{ID: identity.TokenID(fmt.Sprint("t", i))} }
	fill := func(p *places, c func(int) Caller) (n int) {
		for i := range 2 * (p.all + p.reserved) {
			if _, err := p.take(c(i)); err == nil {
				n++
			}
		}
		return n
	}
	const one, two = "192.0.2.1:5", "192.0.2.2:5"
	p := newPlaces(shares{each: 4, address: 8, all: 12, reserved: 3})
	if n := fill(p, func(int) Caller { return asker(token(0), one, roles.Viewer) }); n != 4 {
		t.Errorf("one token takes %d places", n)
	}
	if n := fill(p, func(i int) Caller { return asker(token(1+i), one, roles.Viewer) }); n != 4 {
		t.Errorf("another token at its address takes %d places after it", n)
	}
	if n := fill(p, func(i int) Caller { return asker(token(100+i), two, roles.NetworkAdmin) }); n != 4 {
		t.Errorf("those at another address take %d places", n)
	}
	leave, err := p.take(asker(token(1000), one, roles.Admin))
	if err != nil {
		t.Fatalf("an admin at the first address: %v", err)
	}
	if n := fill(p, func(i int) Caller { return asker(token(2000+i), one, roles.Admin) }); n != 2 {
		t.Errorf("further admins take %d places", n)
	}
	leave()
	leave() // which counts once
	if _, err := p.take(asker(token(1000), one, roles.Admin)); err != nil {
		t.Errorf("the place that was left: %v", err)
	}
	ann := func(i int) Caller {
		return asker(&pki.APIRecord{ID: identity.TokenID(fmt.Sprint("s", i)), Person: "ann", Issuer: "https://id"},
			fmt.Sprintf("192.0.2.%d:1", i%200), roles.Viewer)
	}
	if n := fill(newPlaces(shares{each: 4, address: 8, all: 12}), ann); n != 4 {
		t.Errorf("a person with many tokens takes %d places", n)
	}
	left := newPlaces(shares{each: 1, address: 1, all: 1})
	for range 3 {
		leave, err := left.take(ann(0))
		if err != nil {
			t.Fatal(err)
		}
		leave()
	}
	if len(left.by)+len(left.at) != 0 {
		t.Errorf("%v, %v are kept of who has left", left.by, left.at)
	}
}
