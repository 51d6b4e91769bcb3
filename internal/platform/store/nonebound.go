package store

import (
	"slices"
	"strings"
)

// noneBound refuses a change while a port of these port groups is bound, and compares that this stays so until the
// transaction is made. One group is compared by itself; several as all chunks of ports that there are, so that the
// transaction stays small: a claim of whatever port in between has it made again.
func (t *tx) noneBound(groups []string) error {
	if len(groups) == 0 {
		return nil
	}
	below := t.keys.object(Key{KindPorts, ""})
	prefix := below
	if len(groups) == 1 {
		prefix += groups[0] + "/"
	}
	bound, revision := t.mem.boundIn(func(group string) bool { return slices.Contains(groups, group) })
	t.stays(prefix, revision)
	for key, value := range t.written(prefix) {
		c, err := t.chunkIn(strings.TrimPrefix(key, below), value)
		switch {
		case err != nil:
			return err
		case c == nil:
			delete(bound, strings.TrimPrefix(key, below))
		case slices.Contains(groups, c.group):
			bound[chunkKey(c.group, c.number).Name] = len(c.bound)
		}
	}
	in := map[string]int{}
	for name, n := range bound {
		group, _, _ := parseChunkName(name)
		in[group] += n
	}
	for _, group := range groups {
		if in[group] > 0 {
			return &InUse{Group: group, Ports: in[group]}
		}
	}
	return nil
}

// chunkIn is the chunk of ports in a value that the transaction writes; nil for one that it deletes.
func (t *tx) chunkIn(name string, value []byte) (*chunk, error) {
	if value == nil {
		return nil, nil
	}
	o, err := decode(Key{KindPorts, name}, value, pending)
	if err != nil {
		return nil, err
	}
	return decodeChunk(name, o.Doc)
}
