package cluster

import (
	"testing"

	"heddle/internal/host/keystore"
)

// What was verified by the roots of one identity says nothing about another one's: a root may have gone since.
func TestRecord_ForgetsWhatItVerifiedWithItsIdentity(t *testing.T) {
	r := &Record{id: &keystore.Identity{}}
	_, first := r.verified()
	if _, again := r.verified(); first == nil || again != first {
		t.Error("what was verified is forgotten while the identity is the same")
	}
	if err := r.save(&keystore.Identity{}); err != nil {
		t.Fatal(err)
	}
	if id, now := r.verified(); now == first || id != r.id {
		t.Error("another identity goes by what was verified before")
	}
}
