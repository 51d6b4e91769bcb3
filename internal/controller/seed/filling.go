package seed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"heddle/internal/controller/definition"
	"heddle/internal/controller/history"
	"heddle/internal/controller/inventory"
	"heddle/internal/host/ownfile"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
)

// mostBefore is how long a history may be already: one that people made is not to be filled.
const mostBefore = 10

// filler makes changes one after the other.
type filler struct {
	to     *store.Offline
	now    *slice.Set
	group  slice.Object // the port group that changes
	newest history.Entry
	packer history.Packer
	// definition and object are what each change writes.
	definition, object store.Object
}

// Fill makes n changes of one port group's VLAN, and returns the revision of the last one. dir is the data directory of
// a controller that does not run. File and message of each have its number modulo 100, and its number.
func Fill(ctx context.Context, dir string, n int) (revision int64, err error) {
	id, err := ownfile.Read(filepath.Join(dir, "id"))
	if err != nil {
		return 0, err
	}
	st, err := store.Open(ctx, store.Options{Dir: filepath.Join(dir, "etcd"), Name: string(id), Fast: true,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return 0, err
	}
	f, err := newFiller(ctx, st)
	if err != nil {
		st.Close()
		return 0, err
	}
	if f.to, err = store.OpenOffline(st); err != nil {
		return 0, err
	}
	for i := range n {
		if err = errors.Join(f.change(i), ctx.Err()); err != nil {
			break
		}
	}
	return f.newest.Revision, errors.Join(err, f.to.Close())
}

func newFiller(ctx context.Context, st *store.Store) (*filler, error) {
	f := &filler{now: &slice.Set{}}
	for _, kind := range inventory.Kinds() {
		for _, o := range st.List(store.Kind(kind)) {
			one := slice.Object{Key: slice.Key{Kind: kind, Name: o.Name}, Doc: o.Doc}
			f.now.Put(one)
			if kind == slice.PortGroup && f.group.Name == "" {
				f.group, f.object = one, o
			}
		}
	}
	if f.group.Name == "" {
		return nil, errors.New("the definition has no port group that could change")
	}
	var defined bool
	if f.definition, defined = st.Get(definition.Key()); !defined {
		return nil, errors.New("there is no definition")
	}
	past, err := store.PastOf(st).Newest(ctx, 0, mostBefore+1)
	if err != nil {
		return nil, err
	}
	if len(past) == 0 || len(past) > mostBefore {
		return nil, fmt.Errorf("the definition's history has %d changes or more: only one of 1 to %d is filled",
			len(past), mostBefore)
	}
	f.newest, _, err = history.Decode(past[0].Base, past[0].Revision, past[0].Value)
	return f, err
}

// change makes one change of the definition.
func (f *filler) change(i int) error {
	var doc map[string]any
	if err := json.Unmarshal(f.group.Doc, &doc); err != nil {
		return err
	}
	doc["vlan"] = map[string]int{"access": 100 + i%1000}
	text, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	at, file := time.Now().UTC(), fmt.Sprintf("fleet-%d.yaml", i%100)
	e := history.Entry{Base: f.newest.Revision, At: at, Who: "root", File: file, Message: fmt.Sprintf("change %d", i),
		Objects: []string{f.group.Key.String() + " changed"}}.Next(&f.newest)
	c := slice.Change{Put: []slice.Object{{Key: f.group.Key, Doc: text}}}
	body := history.Body{Put: c.Put}
	if e.Since == 0 {
		body.Whole = slices.Collect(f.now.All())
	}
	packed, err := f.packer.Pack(body)
	if err != nil {
		return err
	}
	record, err := history.Encode(e, packed)
	if err != nil {
		return err
	}
	by, err := json.Marshal(map[string]any{"file": file, "at": at})
	if err != nil {
		return err
	}
	f.definition.Doc, f.object.Doc = by, text
	e.Revision = f.to.Put([]store.Object{f.definition, f.object}, store.NewRecord(e.Base, record))
	f.now.Apply(c)
	f.newest = e
	return nil
}
