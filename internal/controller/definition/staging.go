package definition

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"heddle/internal/controller/inventory"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
)

// A change of the definition with more objects than a transaction can have is written beside the definition first, in
// parts that nobody looks at. The transaction that names it in the definition's one key makes all of it count, at one
// instant and on every controller. Then it is folded into the objects, transaction by transaction, by which nothing
// changes; whoever comes upon a change that is not folded yet, because its writer has ended, goes on with it.
//
//	definitionChange/ID        as long as the change is not folded; written with each transaction of that
//	definitionChange/ID/0000   its parts

// ChangeKind is the kind of the objects that such a change is kept in.
const ChangeKind store.Kind = "definitionChange"

// changeDoc is the object that is there as long as a change is not folded.
type changeDoc struct {
	// Parts is how many parts it has, Digest that of all of them in order; "" in what an earlier version wrote.
	Parts  int       `json:"parts"`
	Digest string    `json:"digest,omitempty"`
	At     time.Time `json:"at"`
	// Folded: the objects have all of it, and its parts are being removed.
	Folded bool `json:"folded,omitempty"`
	// Forced: a port group that the change removes goes although ports of it are bound.
	Forced bool `json:"forced,omitempty"`
}

// Part is a part of a change.
type Part struct {
	At      time.Time      `json:"at"`
	Put     []slice.Object `json:"put,omitempty"`
	Removed []slice.Key    `json:"removed,omitempty"`
	// IDs are identifiers for objects that are new, by KIND/NAME.
	IDs map[string]string `json:"ids,omitempty"`
}

func changeKey(id string) store.Key { return store.Key{Kind: ChangeKind, Name: id} }

// PartKey is the key of a part of a change.
func PartKey(id string, n int) store.Key {
	return store.Key{Kind: ChangeKind, Name: fmt.Sprintf("%s/%04d", id, n)}
}

// partBytes is about how large a part is; an object that is larger is a part of its own.
const partBytes = 256 << 10

// InParts cuts a change into parts.
func InParts(c slice.Change) (parts []slice.Change) {
	var next slice.Change
	size := 0
	add := func(n int) {
		if size += n; size >= partBytes {
			parts, next, size = append(parts, next), slice.Change{}, 0
		}
	}
	for _, o := range c.Put {
		next.Put = append(next.Put, o)
		add(len(o.Doc) + len(o.Name))
	}
	for _, k := range c.Removed {
		next.Removed = append(next.Removed, k)
		add(len(k.Name))
	}
	if !next.Empty() {
		parts = append(parts, next)
	}
	return parts
}

// Written is what a change was written in.
type Written struct {
	Parts  int
	Digest string
}

// WriteParts writes a change in parts, which count for nothing until an object says so. ids are identifiers for its
// objects. What was written before an error is removed by Dead.
func WriteParts(ctx context.Context, st Store, at time.Time, c slice.Change, ids map[slice.Key]string,
	key func(n int) store.Key) (Written, error) {
	parts, sum := InParts(c), sha256.New()
	for n, p := range parts {
		doc, err := json.Marshal(Part{At: at, Put: p.Put, Removed: p.Removed, IDs: idsOf(p.Put, ids)})
		if err != nil {
			return Written{}, err
		}
		if _, err := st.Write(ctx, []store.Change{{Key: key(n), Doc: doc}}); err != nil {
			return Written{}, err
		}
		_, _ = sum.Write(doc) // never fails
	}
	return Written{len(parts), hex.EncodeToString(sum.Sum(nil))}, nil
}

// Dead reports whether a part that no change names can never count: the definition was changed since it was written,
// and so not by the change that it is of, which is made on an earlier revision. The definition has to be read before
// it is looked which changes count. No clock says anything here: the writer's may be any.
func Dead(part store.Object, definition store.Object) bool { return definition.Version > part.Version }

// AddIDs adds the identifiers that a part of a change keeps, see idsOf.
func AddIDs(all map[slice.Key]string, kept map[string]string) {
	for key, id := range kept {
		kind, name, _ := strings.Cut(key, "/")
		all[slice.Key{Kind: slice.Kind(kind), Name: name}] = id
	}
}

// RemoveSome removes objects, as many as fit into one transaction: what is left is removed another time.
func RemoveSome(ctx context.Context, st Store, log *slog.Logger, gone []store.Change, what string) {
	if gone, _ = cut(gone); len(gone) == 0 {
		return
	}
	if _, err := st.Write(ctx, gone); err != nil {
		log.Debug("remove "+what, "err", err)
	}
}

// Staging is what a controller knows of changes that are not folded yet.
type Staging struct {
	// Change is the one that the definition names, "" for none.
	Change string
	Docs   map[string][]byte // by their names
}

// Take takes in an object of a change.
func (s *Staging) Take(e store.Event) {
	if s.Docs == nil {
		s.Docs = map[string][]byte{}
	}
	if e.Object == nil {
		delete(s.Docs, e.Name)
		return
	}
	s.Docs[e.Name] = e.Object.Doc
}

// Over is the definition: the objects, and over them the change that is not folded yet.
func (s *Staging) Over(objects *slice.Set) (*slice.Set, error) {
	if _, open := s.Docs[s.Change]; s.Change == "" || !open {
		return objects, nil
	}
	c, err := s.open()
	if err != nil {
		return nil, err
	}
	other := func(k slice.Key) bool { return !slices.Contains(inventory.Kinds(), k.Kind) }
	objects = objects.Clone()
	objects.Apply(slice.Change{
		Put:     slices.DeleteFunc(c.Put, func(o slice.Object) bool { return other(o.Key) }),
		Removed: slices.DeleteFunc(c.Removed, other)})
	return objects, nil
}

// Counting is the change that counts and is not folded yet; none is empty.
func (s *Staging) Counting() (slice.Change, error) {
	if _, open := s.Docs[s.Change]; s.Change == "" || !open {
		return slice.Change{}, nil
	}
	return s.open()
}

// open is the change that the definition names, whole: one of which a part is missing or another would define what
// nobody asked for.
func (s *Staging) open() (c slice.Change, err error) {
	var head changeDoc
	if err := json.Unmarshal(s.Docs[s.Change], &head); err != nil {
		return c, fmt.Errorf("the change %s of the definition is damaged: %w", s.Change, err)
	}
	if head.Folded {
		return c, nil
	}
	parts, sum := 0, sha256.New()
	for _, name := range slices.Sorted(maps.Keys(s.Docs)) {
		if !strings.HasPrefix(name, s.Change+"/") {
			continue
		}
		var p Part
		if err := json.Unmarshal(s.Docs[name], &p); err != nil {
			return c, fmt.Errorf("the change %s of the definition is damaged: %w", name, err)
		}
		c.Put, c.Removed = append(c.Put, p.Put...), append(c.Removed, p.Removed...)
		parts++
		_, _ = sum.Write(s.Docs[name]) // never fails
	}
	switch {
	case parts != head.Parts:
		err = fmt.Errorf("the change %s of the definition has %d parts in the store, and was written in %d", s.Change,
			parts, head.Parts)
	case head.Digest != "" && head.Digest != hex.EncodeToString(sum.Sum(nil)):
		err = fmt.Errorf("the change %s of the definition has other parts in the store than were written", s.Change)
	}
	if err != nil {
		return slice.Change{}, fmt.Errorf("%w: the definition stays as it was before; restore a snapshot "+
			"(heddle-controller restore)", err)
	}
	return c, nil
}

// ids are the identifiers that the change gives new objects.
func (s *Staging) ids() map[slice.Key]string {
	all := map[slice.Key]string{}
	for name, doc := range s.Docs {
		var p struct {
			IDs map[string]string `json:"ids"`
		}
		if !strings.HasPrefix(name, s.Change+"/") || json.Unmarshal(doc, &p) != nil {
			continue
		}
		AddIDs(all, p.IDs)
	}
	return all
}
