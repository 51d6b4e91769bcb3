package store

import (
	"maps"
	"strings"

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
	// still are beginnings of keys, and for each the revision since which no such key may have been written.
	still map[string]int64
	// chunks are those of ports that are changed, one for each port group.
	chunks map[string]int64
	parent *view
}

func newView(base func(string) entry) *view {
	return &view{base: base, reads: map[string]entry{}, writes: map[string][]byte{}, still: map[string]int64{},
		chunks: map[string]int64{}}
}

// child is the view of one request: it is merged when it fits into the transaction.
func (v *view) child() *view {
	child := newView(v.look)
	child.parent = v
	return child
}

// near returns the chunk of a group that this transaction changes already: a claim takes a port of it if it can.
func (v *view) near(group string) (number int64, ok bool) {
	if number, ok = v.chunks[group]; !ok && v.parent != nil {
		return v.parent.near(group)
	}
	return number, ok
}

// look returns an entry without noting that it was read.
func (v *view) look(key string) entry {
	if value, ok := v.writes[key]; ok {
		return entry{rev: pending, value: value}
	}
	if e, ok := v.reads[key]; ok {
		return e
	}
	return v.base(key)
}

func (v *view) get(key string) entry {
	e := v.look(key)
	if _, written := v.writes[key]; !written {
		v.reads[key] = e
	}
	return e
}

// put writes a key, which has to be read before: what nobody has looked at is not overwritten.
func (v *view) put(key string, value []byte) {
	v.get(key)
	v.writes[key] = value
	v.bytes += len(key) + len(value)
}

// write writes a key without a look at it, where another key that is compared guards it.
func (v *view) write(key string, value []byte) {
	v.writes[key] = value
	v.bytes += len(key) + len(value)
}

func (v *view) del(key string) {
	v.get(key)
	v.writes[key] = nil
}

// stays has the transaction succeed only if no key that begins so was written after a revision.
func (v *view) stays(prefix string, since int64) { v.still[prefix] = since }

// written are the keys that begin so and that this transaction writes, with their values; nil for one that it deletes.
func (v *view) written(prefix string) map[string][]byte {
	all := map[string][]byte{}
	if v.parent != nil {
		all = v.parent.written(prefix)
	}
	for k, value := range v.writes {
		if strings.HasPrefix(k, prefix) {
			all[k] = value
		}
	}
	return all
}

// drop deletes a key without a look at it, where another key that is compared guards it.
func (v *view) drop(key string) { v.writes[key] = nil }

// merge takes over what a child has read, and what it has written unless it is refused.
func (v *view) merge(child *view, refused bool) {
	for k, e := range child.reads {
		if e.rev != pending { // else v writes it, and has read it for that
			v.reads[k] = e
		}
	}
	if refused {
		return
	}
	for prefix, since := range child.still {
		if had, there := v.still[prefix]; there {
			since = min(since, had)
		}
		v.still[prefix] = since
	}
	maps.Copy(v.writes, child.writes)
	maps.Copy(v.chunks, child.chunks)
	v.bytes += child.bytes
}

// fits tells whether a child's part fits into the same transaction.
func (v *view) fits(child *view) bool {
	reads, writes := len(v.reads), len(v.writes)
	for k, e := range child.reads {
		if _, there := v.reads[k]; !there && e.rev != pending {
			reads++
		}
	}
	for k := range child.writes {
		if _, there := v.writes[k]; !there {
			writes++
		}
	}
	for prefix := range child.still {
		if _, there := v.still[prefix]; !there {
			reads++
		}
	}
	return reads+len(v.still) <= MaxChanges && writes <= MaxChanges && v.bytes+child.bytes <= maxBytes
}

// exists tells whether an entry is of a key that there is.
func (e entry) exists() bool { return e.rev > 0 || e.rev == pending && e.value != nil }

// txn are the parts of the transaction: what has to be so, what is written, and what is read when it is not so.
func (v *view) txn() (compare []clientv3.Cmp, write, read []clientv3.Op) {
	for k, e := range v.reads {
		compare = append(compare, clientv3.Compare(clientv3.ModRevision(k), "=", e.rev))
		read = append(read, clientv3.OpGet(k))
	}
	for prefix, since := range v.still {
		compare = append(compare, clientv3.Compare(clientv3.ModRevision(prefix), "<", since+1).WithPrefix())
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
