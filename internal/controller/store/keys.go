package store

import "strings"

// The keys of a Heddle cluster, below its prefix. Everything is watched; only objects are held in memory.
const (
	objectsBelow = "o/" // o/KIND/NAME
	indexBelow   = "i/" // what only one object may have: ports' identifiers, MACs, VNIs
	metaBelow    = "m/" // the cluster's identity, counters, locks
)

type layout struct{ prefix string }

func (l layout) object(k Key) string   { return l.prefix + objectsBelow + string(k.Kind) + "/" + k.Name }
func (l layout) index(s string) string { return l.prefix + indexBelow + s }
func (l layout) meta(s string) string  { return l.prefix + metaBelow + s }

// parse tells which object a key of etcd is; index and meta keys are none.
func (l layout) parse(key string) (Key, bool) {
	rest, ok := strings.CutPrefix(key, l.prefix+objectsBelow)
	if !ok {
		return Key{}, false
	}
	kind, name, ok := strings.Cut(rest, "/")
	return Key{Kind(kind), name}, ok && kind != "" && name != ""
}
