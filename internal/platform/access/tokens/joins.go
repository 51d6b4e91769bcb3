package tokens

import (
	"time"

	"heddle/internal/platform/pki"
	"heddle/internal/platform/store"
)

// lister is what is needed of a store to look at it.
type lister interface {
	List(store.Kind) []store.Object
}

// JoinsLongExpired removes tokens for joining that expired long ago, a few at a time: they count for nothing, whether a
// host has joined by them or not.
func JoinsLongExpired(st lister, now time.Time) (changes []store.Change) {
	for _, o := range st.List(store.KindToken) {
		r, err := pki.DecodeJoinRecord(o.Doc)
		if err == nil && now.Sub(r.Expires) > KeepExpired && len(changes) < MostPruned {
			changes = append(changes, store.Change{Key: o.Key, Delete: true, IfVersion: o.Version})
		}
	}
	return changes
}

// mostInPlaceOf is how many of them are removed with a host; the others take the place of nobody.
const mostInPlaceOf = 32

// JoinsInPlaceOf removes tokens for joining in the place of a host.
func JoinsInPlaceOf(st lister, host string) (changes []store.Change) {
	for _, o := range st.List(store.KindToken) {
		r, err := pki.DecodeJoinRecord(o.Doc)
		if err == nil && r.Replaces == host && len(changes) < mostInPlaceOf {
			changes = append(changes, store.Change{Key: o.Key, Delete: true, IfVersion: o.Version})
		}
	}
	return changes
}
