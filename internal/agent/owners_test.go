package agent

import (
	"reflect"
	"testing"
)

// Each owner knows those before it and none of those after it, so that the reach of a change to one of them is plain.
func TestOwnersKnowOnlyThoseBeforeThem(t *testing.T) {
	place := map[reflect.Type]int{}
	all := reflect.TypeFor[owners]()
	for i := range all.NumField() {
		place[all.Field(i).Type] = i + 1
	}
	links := 0
	for i := range all.NumField() {
		owner := all.Field(i).Type.Elem()
		for k := range owner.NumField() {
			f := owner.Field(k)
			if at := place[f.Type]; at > 0 {
				if links++; at > i {
					t.Errorf("%s knows %s, which is not before it in owners", owner.Name(), f.Name)
				}
			}
			if f.Type == reflect.TypeFor[*Agent]() {
				t.Errorf("%s knows the whole agent by %s", owner.Name(), f.Name)
			}
		}
	}
	if links < all.NumField() {
		t.Errorf("%d links between %d owners: what this test looks at has changed", links, all.NumField())
	}
}
