package definition

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"heddle/internal/platform/store"
	"heddle/internal/slice"
)

// definitionDoc says who made the definition what it is.
type definitionDoc struct {
	File string    `json:"file"`
	At   time.Time `json:"at"`
	// Change is the one that made it, where it did not fit into one transaction.
	Change string `json:"change,omitempty"`
}

// Store is what changes of the definition need of the store.
type Store interface {
	Get(store.Key) (store.Object, bool)
	List(store.Kind) []store.Object
	Write(context.Context, []store.Change) (int64, error)
	Sync(context.Context) error
}

// Writer writes changes of the definition.
type Writer struct {
	Store Store
	Log   *slog.Logger
	// Ids are identifiers for objects that are new; the others get one that no object had.
	Ids map[slice.Key]string
	// Ports is what the change means for static ports.
	Ports Ports
}

// Bounds of one transaction, below those of the store.
const (
	// txnOps is how many keys it compares: one for an object, two for a port group that is removed.
	txnOps = 116
	// TxnBytes is how much it writes.
	TxnBytes = 768 << 10
)

// beside makes what is written in the transaction from which on a change counts, just before that; nil for nothing.
type beside func() ([]store.Change, error)

func (b beside) changes() ([]store.Change, error) {
	if b == nil {
		return nil, nil
	}
	return b()
}

// Write writes a change that was made on that revision of the definition, all of it at one instant (S83).
func (s Writer) Write(ctx context.Context, file string, revision int64, c slice.Change,
	versions map[slice.Key]int64, with beside) (int64, error) {
	list := leaving(identified(ChangesOf(c, versions), s.Ids), s.Ports.Ending)
	if _, left := cut(list); len(left) > 0 {
		return s.WriteInParts(ctx, file, revision, c, with)
	}
	doc, err := json.Marshal(definitionDoc{File: file, At: time.Now()})
	if err != nil {
		return 0, err
	}
	more, err := with.changes()
	if err != nil {
		return 0, err
	}
	list = append(list, store.Change{Key: Key(), Doc: doc, IfVersion: revision})
	return s.Store.Write(ctx, useOf(c, append(list, more...)))
}

// useOf lets a change that only removes use what the store keeps of its quota.
func useOf(c slice.Change, list []store.Change) []store.Change {
	if len(c.Put) > 0 {
		return list
	}
	return store.AllVital(list)
}

// leaving lets port groups be deleted that leave their ports to be removed afterwards.
func leaving(list []store.Change, ending []string) []store.Change {
	names := map[string]bool{}
	for _, name := range ending {
		names[name] = true
	}
	for i := range list {
		list[i].LeavesPorts = list[i].Kind == store.KindPortGroup && list[i].Delete && names[list[i].Name]
	}
	return list
}

// ChangesOf are the changes of the store's objects, made on those versions.
func ChangesOf(c slice.Change, versions map[slice.Key]int64) (list []store.Change) {
	for _, o := range c.Put {
		list = append(list, store.Change{Key: store.Key{Kind: store.Kind(o.Kind), Name: o.Name}, Doc: o.Doc,
			IfVersion: versions[o.Key]})
	}
	for _, k := range c.Removed {
		list = append(list, store.Change{Key: store.Key{Kind: store.Kind(k.Kind), Name: k.Name}, Delete: true,
			IfVersion: versions[k]})
	}
	return list
}

// identified gives new objects their identifiers.
func identified(list []store.Change, ids map[slice.Key]string) []store.Change {
	for i := range list {
		list[i].ID = ids[slice.Key{Kind: slice.Kind(list[i].Kind), Name: list[i].Name}]
	}
	return list
}

// idsOf are the identifiers for these objects, as a part of a change keeps them; nil for none.
func idsOf(objects []slice.Object, ids map[slice.Key]string) map[string]string {
	var list map[string]string
	for _, o := range objects {
		if id := ids[o.Key]; id != "" {
			if list == nil {
				list = map[string]string{}
			}
			list[string(o.Kind)+"/"+o.Name] = id
		}
	}
	return list
}

// cut is what of a list fits into one transaction, and the rest.
func cut(list []store.Change) (now, later []store.Change) {
	ops, size := 0, 0
	for i, c := range list {
		ops++
		if c.Delete && c.Kind == store.KindPortGroup {
			ops++
		}
		size += len(c.Doc)
		if i > 0 && (ops > txnOps || size > TxnBytes) {
			return list[:i:i], list[i:]
		}
	}
	return list, nil
}

// WriteInParts writes a change beside the definition, makes it count, and folds it.
func (s Writer) WriteInParts(ctx context.Context, file string, revision int64, c slice.Change,
	with beside) (int64, error) {
	id := store.NewID()
	revision, err := s.writeBeside(ctx, id, file, revision, c, with)
	if err != nil {
		var away *store.Unavailable
		if !errors.As(err, &away) || !away.MaybeWritten { // it will never count
			s.remove(context.WithoutCancel(ctx), func(o store.Object) bool { return strings.HasPrefix(o.Name, id+"/") })
		}
		return 0, err
	}
	// Also where the caller leaves: a change of 100,000 objects takes a while.
	ctx = context.WithoutCancel(ctx)
	if err := s.Fold(ctx); err != nil {
		s.Log.Warn("a change of the definition counts, and the next one will fold it", "revision", revision, "err", err)
	}
	s.removeDead(ctx)
	return revision, nil
}

// writeBeside writes a change in parts, and makes it count.
func (s Writer) writeBeside(ctx context.Context, id, file string, revision int64, c slice.Change,
	with beside) (int64, error) {
	now := time.Now()
	parts, err := WriteParts(ctx, s.Store, now, c, s.Ids, func(n int) store.Key { return PartKey(id, n) })
	if err != nil {
		return 0, err
	}
	open, err := json.Marshal(changeDoc{Parts: parts.Parts, Digest: parts.Digest, At: now, Forced: s.Ports.Forced})
	if err != nil {
		return 0, err
	}
	doc, err := json.Marshal(definitionDoc{File: file, At: now, Change: id})
	if err != nil {
		return 0, err
	}
	more, err := with.changes()
	if err != nil {
		return 0, err
	}
	return s.Store.Write(ctx, useOf(c, append([]store.Change{{Key: changeKey(id), Doc: open},
		{Key: Key(), Doc: doc, IfVersion: revision}}, more...)))
}

// Fold folds the change that the definition names into the objects, if that is not done yet. Several controllers may do
// it at once: each transaction is made on the one before.
func (s Writer) Fold(ctx context.Context) error {
	kept := map[store.Key]bool{}
	for {
		err := s.foldAll(ctx, kept)
		var conflict *store.Conflict
		var used *store.InUse
		switch {
		case errors.As(err, &used):
			// Ports were bound after the change was made. No port is cut off: the port group stays.
			s.Log.Error("a port group that was to be removed is in use, and stays in the definition", "group",
				used.Group, "ports", used.Ports)
			kept[store.Key{Kind: store.KindPortGroup, Name: used.Group}] = true
		case errors.As(err, &conflict): // another controller does it as well
			if err := s.Store.Sync(ctx); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// foldAll folds it transaction by transaction, as long as nobody else does. What is kept is not removed. The change is
// read once: one of 100,000 objects takes a thousand transactions.
func (s Writer) foldAll(ctx context.Context, kept map[store.Key]bool) error {
	current, _ := s.Store.Get(Key())
	change := ChangeBy(current.Doc)
	open, ok := s.Store.Get(changeKey(change))
	if change == "" || !ok {
		return nil
	}
	have := Staging{Change: change}
	have.Take(store.Event{Key: open.Key, Object: &open})
	var end []store.Change
	for _, o := range s.Store.List(ChangeKind) {
		if strings.HasPrefix(o.Name, change+"/") {
			have.Take(store.Event{Key: o.Key, Object: &o})
			end = append(end, store.Change{Key: o.Key, Delete: true, IfVersion: o.Version})
		}
	}
	c, err := have.open()
	if err != nil {
		return err
	}
	left := s.removing(identified(s.unfolded(c, kept), have.ids()), open.Doc)
	if err := s.writeSome(ctx, &open, left); err != nil {
		return err
	}
	end, left = cut(end) // what its parts said is in the objects already
	if len(left) > 0 {
		if open.Doc, err = folded(open.Doc); err != nil {
			return err
		}
		if err := s.writeSome(ctx, &open, slices.Concat(end, left)); err != nil {
			return err
		}
		end = nil
	}
	end = append(end, store.Change{Key: open.Key, Delete: true, IfVersion: open.Version})
	if len(kept) > 0 { // the definition is another one than the change made it
		end = append(end, store.Change{Key: current.Key, Doc: current.Doc, IfVersion: current.Version})
	}
	_, err = s.Store.Write(ctx, store.AllVital(end)) // the change counts
	return err
}

// folded is the object of a change whose parts are removed in several transactions: nobody misses those.
func folded(open []byte) ([]byte, error) {
	var head changeDoc
	if err := json.Unmarshal(open, &head); err != nil {
		return nil, err
	}
	head.Folded = true
	return json.Marshal(head)
}

// writeSome writes changes, as many in a transaction as fit, each with the object of the change that is folded: who
// folds it as well has a conflict.
func (s Writer) writeSome(ctx context.Context, open *store.Object, list []store.Change) error {
	for len(list) > 0 {
		next, left := cut(list)
		version, err := s.Store.Write(ctx, store.AllVital(append(next, store.Change{Key: open.Key, Doc: open.Doc,
			IfVersion: open.Version})))
		if err != nil {
			return err
		}
		list, open.Version = left, version
	}
	return nil
}

// unfolded is what of a change the objects do not have yet.
func (s Writer) unfolded(c slice.Change, kept map[store.Key]bool) []store.Change {
	var left slice.Change
	versions := map[slice.Key]int64{}
	look := func(k slice.Key) (o store.Object, ok bool) {
		o, ok = s.Store.Get(store.Key{Kind: store.Kind(k.Kind), Name: k.Name})
		versions[k] = o.Version
		return o, ok
	}
	for _, o := range c.Put {
		if has, ok := look(o.Key); !ok || string(has.Doc) != string(o.Doc) {
			left.Put = append(left.Put, o)
		}
	}
	for _, k := range c.Removed {
		if _, ok := look(k); ok && !kept[store.Key{Kind: store.Kind(k.Kind), Name: k.Name}] {
			left.Removed = append(left.Removed, k)
		}
	}
	return ChangesOf(left, versions)
}

// removing has port groups removed whose ports are removed afterwards: while one is bound by force alone.
func (s Writer) removing(list []store.Change, open []byte) []store.Change {
	var head changeDoc
	_, work := s.Store.Get(PortWorkKey())
	if !work || json.Unmarshal(open, &head) != nil { // the change ended no ports
		return list
	}
	for i, c := range list {
		if c.Delete && c.Kind == store.KindPortGroup {
			if list[i].LeavesPorts = true; !head.Forced {
				list[i].Unbound = []string{c.Name}
			}
		}
	}
	return list
}

// ChangeBy is the change that the definition's own object names.
func ChangeBy(doc []byte) string {
	var d definitionDoc
	if json.Unmarshal(doc, &d) != nil {
		return ""
	}
	return d.Change
}

// removeDead removes parts of changes that can't come to count any more.
func (s Writer) removeDead(ctx context.Context) {
	current, _ := s.Store.Get(Key())
	s.remove(ctx, func(o store.Object) bool {
		id, _, _ := strings.Cut(o.Name, "/")
		_, open := s.Store.Get(changeKey(id))
		return !open && Dead(o, current)
	})
}

// remove removes parts of changes, as many as fit into one transaction. What is left is removed another time.
func (s Writer) remove(ctx context.Context, is func(part store.Object) bool) {
	var gone []store.Change
	for _, o := range s.Store.List(ChangeKind) {
		if strings.Contains(o.Name, "/") && is(o) {
			gone = append(gone, store.Change{Key: o.Key, Delete: true, IfVersion: o.Version})
		}
	}
	RemoveSome(ctx, s.Store, s.Log, gone, "parts of a change that does not count")
}
