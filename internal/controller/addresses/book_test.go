package addresses

import (
	"encoding/json"
	"net/netip"
	"testing"

	"heddle/internal/controller/inventory"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
)

func object(t *testing.T, addr string) []byte {
	t.Helper()
	doc, err := json.Marshal(document{Addresses: []inventory.Granted{{Port: "vmk0", Switch: "s",
		Address: netip.MustParseAddr(addr)}}})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// What a change that counts and is not folded says goes before what the objects say, until there is no such change.
func TestBook_WhatIsStagedGoesFirst(t *testing.T) {
	b := New()
	if err := b.Take(store.Event{Key: Key("esx1"), Object: &store.Object{Doc: object(t, "192.0.2.1"),
		Version: 5}}); err != nil {
		t.Fatal(err)
	}
	key := func(host string) slice.Key { return slice.Key{Kind: slice.Kind(Kind), Name: host} }
	concerned := b.Stage(slice.Change{Put: []slice.Object{{Key: key("esx2"), Doc: object(t, "192.0.2.2")}},
		Removed: []slice.Key{key("esx1")}})
	if !concerned["esx1"] || !concerned["esx2"] || len(b.Of("esx1")) != 0 || len(b.Of("esx2")) != 1 {
		t.Errorf("staged: %v, esx1 has %v, esx2 %v", concerned, b.Of("esx1"), b.Of("esx2"))
	}
	if concerned = b.Stage(slice.Change{}); !concerned["esx1"] || len(b.Of("esx1")) != 1 || len(b.Of("esx2")) != 0 {
		t.Errorf("folded: %v, esx1 has %v, esx2 %v", concerned, b.Of("esx1"), b.Of("esx2"))
	}
	b.Reset()
	if len(b.All()) != 0 || b.Version() != 0 {
		t.Errorf("after a reset there is %v, version %d", b.All(), b.Version())
	}
}

// An object that cannot be read leaves what there was.
func TestBook_ADamagedObjectLeavesWhatThereWas(t *testing.T) {
	b := New()
	for _, doc := range [][]byte{object(t, "192.0.2.1"), []byte("{")} {
		err := b.Take(store.Event{Key: Key("esx1"), Object: &store.Object{Doc: doc}})
		if (err != nil) != (string(doc) == "{") || len(b.Of("esx1")) != 1 {
			t.Errorf("%s: %v, the host has %v", doc, err, b.Of("esx1"))
		}
	}
}

// All changes of a grant are made on the versions that the book had: the second of two is refused.
func TestGrant_IsMadeOnTheBooksVersion(t *testing.T) {
	b := New()
	for _, e := range []store.Event{{Key: BookKey(), Object: &store.Object{Version: 7}},
		{Key: Key("gone"), Object: &store.Object{Doc: object(t, "192.0.2.1"), Version: 5}}} {
		if err := b.Take(e); err != nil {
			t.Fatal(err)
		}
	}
	empty, err := inventory.New(&slice.Set{})
	if err != nil {
		t.Fatal(err)
	}
	g, full := b.Grant(Need{Definition: empty, Also: func() []*inventory.Inventory { return nil },
		More: map[string][]inventory.Granted{"new": {{Port: "vmk0", Switch: "s",
			Address: netip.MustParseAddr("192.0.2.9")}}},
		Joined: func(string) bool { return false }})
	g.Release(b.Unused(func(host string) bool { return host == "gone" }))
	list, err := g.Changes()
	if len(full) != 0 || err != nil || len(list) != 3 || list[0].Key != Key("new") || list[0].IfVersion != store.New ||
		list[1].Key != Key("gone") || !list[1].Delete || list[1].IfVersion != 5 || list[2].Key != BookKey() ||
		list[2].IfVersion != 7 {
		t.Errorf("%v %v %+v", full, err, list)
	}
	if more := g.Bound(1); !more || g.Empty() {
		t.Error("a grant about two hosts is bounded to one, and has no more or none")
	}
	if more := g.Bound(1); more {
		t.Error("a grant about one host is bounded to one, and has more")
	}
}
