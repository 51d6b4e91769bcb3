package store

import (
	"fmt"
	"strings"
)

// The keys of a Heddle cluster, below its prefix. Everything is watched; only objects are held in memory.
const (
	objectsBelow = "o/" // o/KIND/NAME
	indexBelow   = "i/" // what only one object may have: ports' identifiers, MACs, VNIs
	metaBelow    = "m/" // the cluster's identity, counters, locks
	pastBelow    = "h/" // h/BASE: records of the history, of which nothing is held in memory
	pieceBelow   = "p/" // p/BASE/ID/NUMBER: pieces of records that are too large for one value
)

type layout struct{ prefix string }

func (l layout) object(k Key) string   { return l.prefix + objectsBelow + string(k.Kind) + "/" + k.Name }
func (l layout) index(s string) string { return l.prefix + indexBelow + s }
func (l layout) meta(s string) string  { return l.prefix + metaBelow + s }

// past is the key of the record of the change that was made on a revision.
func (l layout) past(base int64) string { return l.prefix + pastBelow + revisionKey(base) }

// piece is the key of a piece of such a record.
func (l layout) piece(base int64, id string, n int) string {
	return l.prefix + pieceBelow + revisionKey(base) + "/" + id + fmt.Sprintf("/%06d", n)
}

// revisionKey is a revision in a key: the order of keys is that of the revisions.
func revisionKey(revision int64) string { return fmt.Sprintf("%016x", revision) }

// parse tells which object a key of etcd is; index and meta keys are none.
func (l layout) parse(key string) (Key, bool) {
	rest, ok := strings.CutPrefix(key, l.prefix+objectsBelow)
	if !ok {
		return Key{}, false
	}
	kind, name, ok := strings.Cut(rest, "/")
	return Key{Kind(kind), name}, ok && kind != "" && name != ""
}
