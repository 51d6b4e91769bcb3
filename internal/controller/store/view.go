package store

import (
	clientv3 "go.etcd.io/etcd/client/v3"
)

// entry is a value and the revision that wrote it; revision 0 = there is none.
type entry struct {
	rev   int64
	value []byte
}

// pending is the revision of a value that the same transaction writes.
const pending int64 = -2

// view is the state that a transaction is built on: what it reads is compared when it is committed, so that it succeeds
// only if all of that is still so. Requests of one transaction see what those before them write.
type view struct {
	base   func(key string) entry
	reads  map[string]entry
	writes map[string][]byte // nil = deleted
	bytes  int
	// grown are the chunks that ports were added to, by port group: the memory doesn't know them yet.
	grown  map[string]int64
	parent *view
}

func newView(base func(string) entry) *view {
	return &view{base: base, reads: map[string]entry{}, writes: map[string][]byte{}, grown: map[string]int64{}}
}

// child is the view of one request: it is merged, or dropped when the request is refused or put off.
func (v *view) child() *view {
	child := newView(func(key string) entry { return v.get(key) })
	child.parent = v
	return child
}

// added returns the chunk of a group that ports were added to.
func (v *view) added(group string) (number int64, ok bool) {
	if number, ok = v.grown[group]; !ok && v.parent != nil {
		return v.parent.added(group)
	}
	return number, ok
}

func (v *view) get(key string) entry {
	if value, ok := v.writes[key]; ok {
		return entry{rev: pending, value: value}
	}
	if e, ok := v.reads[key]; ok {
		return e
	}
	e := v.base(key)
	v.reads[key] = e
	return e
}

// put writes a key, which has to be read before: what nobody has looked at is not overwritten.
func (v *view) put(key string, value []byte) {
	v.get(key)
	v.writes[key] = value
	v.bytes += len(key) + len(value)
}

func (v *view) del(key string) {
	v.get(key)
	v.writes[key] = nil
}

// drop deletes a key without a look at it, where another key that is compared guards it.
func (v *view) drop(key string) { v.writes[key] = nil }

// merge takes over what a child has written. What it read, v has read for it.
func (v *view) merge(child *view) {
	for k, value := range child.writes {
		v.writes[k] = value
	}
	for group, number := range child.grown {
		v.grown[group] = number
	}
	v.bytes += child.bytes
}

// exists tells whether an entry is of a key that there is.
func (e entry) exists() bool { return e.rev > 0 || e.rev == pending && e.value != nil }

// txn are the parts of the transaction: what has to be so, what is written, and what is read when it is not so.
func (v *view) txn() (compare []clientv3.Cmp, write, read []clientv3.Op) {
	for k, e := range v.reads {
		compare = append(compare, clientv3.Compare(clientv3.ModRevision(k), "=", e.rev))
		read = append(read, clientv3.OpGet(k))
	}
	for k, value := range v.writes {
		e, read := v.reads[k]
		switch {
		case value != nil:
			write = append(write, clientv3.OpPut(k, string(value)))
		case !read || e.rev != 0:
			write = append(write, clientv3.OpDelete(k))
		}
	}
	return compare, write, read
}
