package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"heddle/internal/slice"
)

// sliceOf is a version with these switches and port groups SWITCH/GROUP.
func sliceOf(revision int64, names ...string) *Slice {
	s := &slice.Set{}
	for _, name := range names {
		kind := slice.Switch
		if strings.Contains(name, "/") {
			kind = slice.PortGroup
		}
		s.Put(slice.Object{Key: slice.Key{Kind: kind, Name: name}, Doc: fmt.Appendf(nil, "%s of %d", name, revision)})
	}
	return &Slice{Epoch: 1, Revision: revision, Objects: slices.Collect(s.All())}
}

// usesOf reads "port=switch/group port=switch/group".
func usesOf(text string) (list []Use) {
	for _, word := range strings.Fields(text) {
		port, group, _ := strings.Cut(word, "=")
		list = append(list, Use{port, group})
	}
	return list
}

func (k Keeping) text() string {
	var parts []string
	for _, o := range k.Objects {
		active := slices.ContainsFunc(k.Active, func(a slice.Object) bool { return a.Key == o.Key })
		parts = append(parts, fmt.Sprintf("%s@%d%v active=%v", o.Name, o.Revision, o.Ports, active))
	}
	for _, u := range k.Strangers {
		parts = append(parts, "stranger "+u.Port)
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// A host keeps what ports use and the next version lacks, each object for the ports that have it.
func TestS103_WhatIsKeptBesideADefinition(t *testing.T) {
	both, web, none := sliceOf(1, "dvs", "dvs/web", "dvs/db"), sliceOf(2, "dvs", "dvs/db"), sliceOf(3)
	webFor := func(ports ...string) []KeptObject {
		return KeepObjects(nil, both, web, usesOf(strings.Join(ports, "=dvs/web ")+"=dvs/web"),
			usesOf(strings.Join(ports, "=dvs/web ")+"=dvs/web")).Objects
	}
	for _, c := range []struct {
		what        string
		kept        []KeptObject
		was, next   *Slice
		before, now string
		want        string
	}{
		{"nothing is removed", nil, both, both, "a=dvs/web", "a=dvs/web", ""},
		{"what no port uses", nil, both, web, "a=dvs/db", "a=dvs/db", ""},
		{"what a port uses", nil, both, web, "a=dvs/web b=dvs/db", "a=dvs/web b=dvs/db",
			"dvs/web@1[a] active=true"},
		{"a whole switch", nil, both, none, "a=dvs/web", "a=dvs/web", "dvs/web@1[a] active=true, dvs@1[] active=true"},
		{"a whole switch, later", webFor("a"), web, none, "a=dvs/web", "a=dvs/web",
			"dvs/web@1[a] active=true, dvs@2[] active=true"},
		{"another port", webFor("a"), web, web, "a=dvs/web", "a=dvs/web b=dvs/web",
			"dvs/web@1[a] active=true, stranger b"},
		{"its port ends", webFor("a", "b"), web, web, "a=dvs/web b=dvs/web", "b=dvs/web",
			"dvs/web@1[a b] active=true"},
		{"its last port ends", webFor("a"), web, web, "a=dvs/web", "", "dvs/web@1[a] active=false"},
		{"and begins again", webFor("a"), web, web, "", "a=dvs/web", "dvs/web@1[a] active=true"},
		{"its port moves", webFor("a"), web, web, "a=dvs/web", "a=dvs/db", ""},
		{"one of its ports moves", webFor("a", "b"), web, web, "a=dvs/web b=dvs/web", "a=dvs/db b=dvs/web",
			"dvs/web@1[b] active=true"},
		{"the definition has it again", webFor("a"), web, both, "a=dvs/web", "a=dvs/web", ""},
		{"its VM is deleted", Released(webFor("a"), "a"), web, web, "", "", ""},
		{"the agent starts", webFor("a"), nil, web, "a=dvs/web", "a=dvs/web", "dvs/web@1[a] active=true"},
		{"the host is in no cluster", nil, nil, nil, "a=lan/office", "a=lan/office", ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			if got := KeepObjects(c.kept, c.was, c.next, usesOf(c.before), usesOf(c.now)).text(); got != c.want {
				t.Errorf("kept is %q, want %q", got, c.want)
			}
		})
	}
}

// What is remembered for ports that have ended is bounded: the oldest goes first. What a port uses stays.
func TestS103_WhatIsKeptForNoPortIsBounded(t *testing.T) {
	var names []string
	var before []Use
	for i := range mostKept + 3 {
		group := fmt.Sprintf("dvs/g%03d", i)
		names, before = append(names, group), append(before, Use{fmt.Sprintf("p%03d", i), group})
	}
	was, next := sliceOf(1, append(names, "dvs")...), sliceOf(2, "dvs")
	all := KeepObjects(nil, was, next, before, before)
	if len(all.Objects) != len(before) || len(all.Active) != len(before) {
		t.Fatalf("of %d in use %d are kept, %d active", len(before), len(all.Objects), len(all.Active))
	}
	left := KeepObjects(all.Objects, next, next, before, before[:1])
	if len(left.Objects) != mostKept+1 || left.Objects[0].Name != "dvs/g000" || left.Objects[1].Name != "dvs/g003" {
		t.Errorf("%d are kept: %s", len(left.Objects), left.text())
	}
}
