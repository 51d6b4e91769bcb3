package cluster

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/slice"
)

func whole(revision int64, objects ...slice.Object) *controllerv1.SliceUpdate {
	hash := slice.Of(objects...).Hash()
	u := &controllerv1.SliceUpdate{Whole: true, Version: &controllerv1.SliceVersion{Epoch: 1, Revision: revision,
		Hash: hash[:]}}
	for _, o := range objects {
		u.Put = append(u.Put, &controllerv1.SliceObject{Kind: string(o.Kind), Name: o.Name, Doc: o.Doc})
	}
	return u
}

// What is acknowledged is the version of what the agent was handed, which it also says of it when it connects again.
func TestReceived_HandsOverWhatItSaysOfIt(t *testing.T) {
	web := slice.Object{Key: slice.Key{Kind: slice.PortGroup, Name: "dvs/web"}, Doc: []byte(`{"name":"web"}`)}
	db := slice.Object{Key: slice.Key{Kind: slice.PortGroup, Name: "dvs/db"}, Doc: []byte(`{"name":"db"}`)}
	r := from(nil)
	if err := r.update(whole(7, web)); err != nil {
		t.Fatal(err)
	}
	first := r.ready()
	before := r.set.Hash()
	next := slice.Of(web, db).Hash()
	if err := r.update(&controllerv1.SliceUpdate{From: before[:], Version: &controllerv1.SliceVersion{Epoch: 1,
		Revision: 8, Hash: next[:]}, Put: whole(8, db).GetPut()}); err != nil {
		t.Fatal(err)
	}
	second := r.ready()
	for _, got := range []ready{first, second} {
		if want := version(got.Slice); !proto.Equal(got.version(), want) {
			t.Errorf("version %v of content %v", got.version(), want)
		}
	}
	if first.Set().Len() != 1 || second.Set().Len() != 2 || bytes.Equal(first.hash[:], second.hash[:]) {
		t.Errorf("first %+v, second %+v", first, second)
	}
}

func TestReceived_RefusesWhatDoesNotFit(t *testing.T) {
	web := slice.Object{Key: slice.Key{Kind: slice.PortGroup, Name: "dvs/web"}, Doc: []byte(`{"name":"web"}`)}
	for name, change := range map[string]func(*controllerv1.SliceUpdate){
		"for another content":   func(u *controllerv1.SliceUpdate) { u.Whole, u.From = false, make([]byte, 31) },
		"of another hash":       func(u *controllerv1.SliceUpdate) { u.Version.Hash = make([]byte, 32) },
		"an object is damaged":  func(u *controllerv1.SliceUpdate) { u.Put[0].Doc = []byte(`{"name":"wed"}`) },
		"without a version":     func(u *controllerv1.SliceUpdate) { u.Version = nil },
		"an object has no name": func(u *controllerv1.SliceUpdate) { u.Put[0].Name = "" },
	} {
		t.Run(name, func(t *testing.T) {
			r := from(nil)
			u := whole(7, web)
			change(u)
			if r.update(u) == nil || r.set.Len() != 0 || r.revision != 0 {
				t.Errorf("taken: %+v", r)
			}
		})
	}
}

// A controller that was left over from before a restore is not followed by a host that knows of the restore.
func TestReceived_KnowsAnOlderEpoch(t *testing.T) {
	r := from(nil)
	for _, c := range []struct {
		name      string
		has, says int64
		ok        bool
	}{{"a host that has nothing", 0, 1, true}, {"the same", 7, 7, true}, {"restored since", 7, 8, true},
		{"left over", 8, 7, false}} {
		t.Run(c.name, func(t *testing.T) {
			r.epoch = c.has
			if err := r.older(&controllerv1.SliceVersion{Epoch: c.says}); (err == nil) != c.ok {
				t.Errorf("%d after %d: %v", c.says, c.has, err)
			}
		})
	}
}
