package rounds

import "slices"

// Of are things that wait, each under a key: one key after the other has its turn, and of a key what came first.
// However much waits under one key, what waits under another one waits for one turn of each key at most. The zero value
// is empty.
type Of[K comparable, V any] struct {
	keys []K // those under which something waits, in the order in which they have their turn
	by   map[K][]V
}

// Add has something wait.
func (r *Of[K, V]) Add(key K, v V) {
	if r.by == nil {
		r.by = map[K][]V{}
	}
	if len(r.by[key]) == 0 {
		r.keys = append(r.keys, key)
	}
	r.by[key] = append(r.by[key], v)
}

// Next takes out what has its turn; ok is false where nothing waits.
func (r *Of[K, V]) Next() (v V, ok bool) {
	if len(r.keys) == 0 {
		return v, false
	}
	key := r.keys[0]
	r.keys = r.keys[1:]
	v, r.by[key] = r.by[key][0], r.by[key][1:]
	if len(r.by[key]) > 0 {
		r.keys = append(r.keys, key)
	} else {
		delete(r.by, key)
	}
	return v, true
}

// Remove takes out the last that waits under a key of those that is accepts; ok is false where there is none.
func (r *Of[K, V]) Remove(key K, is func(V) bool) (v V, ok bool) {
	for i, one := range slices.Backward(r.by[key]) {
		if !is(one) {
			continue
		}
		if r.by[key] = slices.Delete(r.by[key], i, i+1); len(r.by[key]) == 0 {
			delete(r.by, key)
			r.keys = slices.DeleteFunc(r.keys, func(k K) bool { return k == key })
		}
		return one, true
	}
	return v, false
}

// Count is how many wait under a key.
func (r *Of[K, V]) Count(key K) int { return len(r.by[key]) }

// Len is how many wait.
func (r *Of[K, V]) Len() (n int) {
	for _, list := range r.by {
		n += len(list)
	}
	return n
}

// Largest is the key under which most wait, and how many that are.
func (r *Of[K, V]) Largest() (key K, n int) {
	for k, list := range r.by {
		if len(list) > n {
			key, n = k, len(list)
		}
	}
	return key, n
}
