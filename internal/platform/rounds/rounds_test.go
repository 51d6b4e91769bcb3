package rounds

import (
	"slices"
	"testing"
)

// Keys take turns, and of a key what came first is first; what is taken out has no turn, nor has its key when it was
// all.
func TestOf(t *testing.T) {
	var r Of[string, int]
	for _, w := range []struct {
		key string
		v   int
	}{{"a", 1}, {"a", 2}, {"b", 3}, {"a", 4}, {"c", 5}, {"b", 6}} {
		r.Add(w.key, w.v)
	}
	if key, n := r.Largest(); key != "a" || n != 3 || r.Len() != 6 || r.Count("b") != 2 {
		t.Errorf("most are %d of %s, %d in all, %d of b", n, key, r.Len(), r.Count("b"))
	}
	if _, ok := r.Remove("c", func(v int) bool { return v == 1 }); ok {
		t.Error("what does not wait under a key is taken out")
	}
	if v, ok := r.Remove("c", func(v int) bool { return v == 5 }); !ok || v != 5 || r.Count("c") != 0 {
		t.Errorf("taken out: %d, %v", v, ok)
	}
	if v, ok := r.Remove("a", func(int) bool { return true }); !ok || v != 4 {
		t.Errorf("the last of a: %d, %v", v, ok)
	}
	var order []int
	for v, ok := r.Next(); ok; v, ok = r.Next() {
		order = append(order, v)
	}
	if want := []int{1, 3, 2, 6}; !slices.Equal(order, want) || r.Len() != 0 {
		t.Errorf("turns: %v, want %v; %d wait", order, want, r.Len())
	}
}
