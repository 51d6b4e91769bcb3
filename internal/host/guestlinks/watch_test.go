package guestlinks

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// rig is a watcher and what it has told and warned of.
type rig struct {
	*testing.T
	dir    string
	w      *Watcher
	told   chan map[string]Domain
	warned chan error
}

func newRig(t *testing.T) *rig {
	r := &rig{T: t, dir: filepath.Join(t.TempDir(), "qemu"), told: make(chan map[string]Domain, 100),
		warned: make(chan error, 100)}
	r.w = Watch(r.dir, func(_ context.Context, down map[string]Domain) { r.told <- down },
		func(err error) { r.warned <- err })
	t.Cleanup(func() {
		if err := r.w.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *rig) make() {
	r.Helper()
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		r.Fatal(err)
	}
}

// writes writes a status as libvirt does: under another name first.
func (r *rig) writes(name, text string) {
	r.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		r.Fatal(err)
	}
}

// tells waits until the watcher tells that these devices are down, of one domain; none for no domain.
func (r *rig) tells(why string, devices ...string) {
	r.Helper()
	want := map[string]Domain{}
	if len(devices) > 0 {
		want[uuid] = Domain{"vm1", uuid, devices}
	}
	var last map[string]Domain
	for deadline := time.After(time.Minute); ; {
		select {
		case last = <-r.told:
		case <-deadline:
			r.Fatalf("%s: told last: %+v", why, last)
		}
		if reflect.DeepEqual(last, want) {
			return
		}
	}
}

// TestS195_LinksAreFollowed: what is there at the start, what changes and what ends, in a directory that comes and
// goes.
func TestS195_LinksAreFollowed(t *testing.T) {
	r := newRig(t)
	r.w.Want(true) // libvirt is not installed yet
	r.make()
	r.writes("vm1.xml", status(uuid, "down"))
	r.tells("there before it is followed", "vnet0")
	r.writes("vm1.xml", status(uuid, "down", "down"))
	r.tells("a second one", "vnet0", "vnet1")
	r.writes("vm1.xml", status(uuid, "up", ""))
	r.tells("set up again")
	r.writes("vm1.xml", status(uuid, "down"))
	r.tells("down once more", "vnet0")
	if err := os.Remove(filepath.Join(r.dir, "vm1.xml")); err != nil {
		t.Fatal(err)
	}
	r.tells("the domain has ended")
	r.writes("renamed.xml", status(uuid, "down"))
	r.tells("it is known by its UUID", "vnet0")
	if err := os.RemoveAll(r.dir); err != nil {
		t.Fatal(err)
	}
	r.tells("the directory is gone")
	r.make()
	r.writes("vm1.xml", status(uuid, "down"))
	r.tells("it is there again", "vnet0")
	r.w.Want(false)
	r.tells("nobody wants it")
	r.w.Want(true)
	r.tells("somebody wants it", "vnet0")
}

// TestS195_WhatIsNoStatusChangesNothing: what cannot be read leaves what is known, and is warned of once.
func TestS195_WhatIsNoStatusChangesNothing(t *testing.T) {
	r := newRig(t)
	r.make()
	r.writes("vm1.xml", status(uuid, "down"))
	r.w.Want(true)
	r.tells("there from the beginning", "vnet0")
	r.writes("vm1.xml", "<domstatus>")
	if err := <-r.warned; !strings.Contains(err.Error(), "vm1.xml") {
		t.Errorf("warned of %v", err)
	}
	other := "5e0c3a1e-1111-4222-8333-0000000000a2"
	if err := os.Symlink(filepath.Join(r.dir, "vm1.xml"), filepath.Join(r.dir, "link.xml")); err != nil {
		t.Fatal(err)
	}
	r.writes("vm2.xml.tmp", status(other, "down")) // not the name of a status
	r.writes("vm1.xml", "<domstatus></domstatus>")
	r.writes("vm2.xml", status(other, "down"))
	for down := range r.told {
		if len(down[uuid].Down) == 0 {
			t.Fatalf("a status that cannot be read was taken for one without links: %+v", down)
		}
		if len(down) == 2 {
			break
		}
	}
	if n := len(r.warned); n > 1 { // of the symbolic link alone
		t.Errorf("%d more warnings", n)
	}
}

// TestNoticesAreReadAsTheKernelWritesThem: a lost notice has all read anew, and a name that is cut short is none.
func TestNoticesAreReadAsTheKernelWritesThem(t *testing.T) {
	record := func(mask uint32, name string) []byte {
		b := make([]byte, 16, 32)
		b[4], b[5], b[6], b[7] = byte(mask), byte(mask>>8), byte(mask>>16), byte(mask>>24)
		b[12] = byte(len(name))
		return append(b, name...)
	}
	n := noticeIn(append(record(0x80, "a.xml\x00\x00\x00"), record(0x80, "b.new\x00\x00\x00")...))
	if !reflect.DeepEqual(n, notice{files: []string{"a.xml"}}) {
		t.Errorf("%+v", n)
	}
	if n := noticeIn(record(0x4000, "")); !n.all {
		t.Errorf("%+v", n)
	}
	if n := noticeIn(record(0x8000, "")); !n.over {
		t.Errorf("%+v", n)
	}
	if n := noticeIn(record(0x80, "a.xml\x00\x00\x00")[:18]); len(n.files) > 0 || n.all || n.over {
		t.Errorf("%+v", n)
	}
}
