package rpc

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"heddle/internal/controller/inventory"
	"heddle/internal/platform/store"
)

// A kind of objects that nobody takes in is nothing to a fleet: a kind that is forgotten in the table, or one of a
// later version, changes no host.
func TestTakersOf_TheKindsThatAFleetTakesIn(t *testing.T) {
	f := newFleet(slog.New(slog.DiscardHandler), 1)
	var kinds []string
	for kind := range maps.Keys(f.takers) {
		kinds = append(kinds, string(kind))
	}
	slices.Sort(kinds)
	want := append(inventory.KindNames(), "addressBook", "controller", "definition", "definitionChange", "host",
		"hostAddresses", "rollout", "rolloutPart", "together")
	slices.Sort(want)
	if !slices.Equal(kinds, want) {
		t.Errorf("taken in: %s\nwant %s", strings.Join(kinds, " "), strings.Join(want, " "))
	}
	before := f.inventory.Objects().Hash()
	f.take(store.Batch{Revision: 5, Events: []store.Event{{Key: store.Key{Kind: "later", Name: "x"},
		Object: &store.Object{Doc: []byte("{}")}}}})
	if f.read != 5 || f.inventory.Objects().Hash() != before {
		t.Errorf("after an object of a later version: read up to %d", f.read)
	}
}
