package guestlinks

import (
	"errors"
	"os"
	"reflect"
	"testing"
	"time"
)

// next is what the watcher tells next, and nothing else.
func (r *rig) next(why string, devices ...string) {
	r.Helper()
	want := map[string]Domain{}
	if len(devices) > 0 {
		want[uuid] = Domain{"vm1", uuid, devices}
	}
	select {
	case got := <-r.told:
		if !reflect.DeepEqual(got, want) {
			r.Fatalf("%s: told %+v", why, got)
		}
	case <-time.After(time.Minute):
		r.Fatalf("%s: nothing is told", why)
	}
}

// TestS195_WhatIsKnownStaysWhenFollowingEnds: the kernel says no more, and a while later the directory is followed
// anew. No link goes up meanwhile.
func TestS195_WhatIsKnownStaysWhenFollowingEnds(t *testing.T) {
	r := newRig(t)
	r.make()
	r.writes("vm1.xml", status(uuid, "down", ""))
	ends := make(chan *os.File, 100)
	r.w.listen = func(string) (notices, error) { // it says nothing, until the other end is closed
		read, write, err := os.Pipe()
		ends <- write
		return notices{read}, err
	}
	r.w.Want(true)
	r.next("at first", "vnet0")
	r.writes("vm1.xml", status(uuid, "down", "down"))
	(<-ends).Close()
	r.next("after a session that has ended", "vnet0", "vnet1")
	if err := os.RemoveAll(r.dir); err != nil {
		t.Fatal(err)
	}
	(<-ends).Close()
	r.next("there is no directory")
}

// TestS195_ADirectoryThatCannotBeFollowedIsRead: at once, and again and again.
func TestS195_ADirectoryThatCannotBeFollowedIsRead(t *testing.T) {
	r := newRig(t)
	r.make()
	r.writes("vm1.xml", status(uuid, "down"))
	r.w.listen = func(string) (notices, error) { return notices{}, errors.New("too many open files") }
	r.w.Want(true)
	r.next("at first", "vnet0")
	r.writes("vm1.xml", status(uuid, "down", "down"))
	r.next("after a change", "vnet0", "vnet1")
	if n := len(r.warned); n != 1 {
		t.Errorf("warned %d times", n)
	}
	r.writes("vm1.xml", status(uuid))
	r.next("set up again")
}

// TestS195_TheFirstReadingIsAwaited: whoever begins knows at once what is down, and is told then what changes.
func TestS195_TheFirstReadingIsAwaited(t *testing.T) {
	r := newRig(t)
	if first := r.w.First(); len(first) > 0 || len(r.warned) > 0 {
		t.Errorf("without a directory: %+v, %d warnings", first, len(r.warned))
	}
	r.make()
	r.writes("vm1.xml", status(uuid, "down"))
	if first := r.w.First(); !reflect.DeepEqual(first, map[string]Domain{uuid: {"vm1", uuid, []string{"vnet0"}}}) {
		t.Errorf("%+v", first)
	}
	r.writes("vm1.xml", status(uuid, ""))
	r.w.Want(true)
	r.next("set up between the first reading and following")
}

// TestS195_TheFirstReadingIsBounded: what is too much to wait for is read when the directory is followed.
func TestS195_TheFirstReadingIsBounded(t *testing.T) {
	r := newRig(t)
	r.make()
	r.writes("huge.xml", "")
	if err := os.Truncate(r.dir+"/huge.xml", maxFirst+1); err != nil {
		t.Fatal(err)
	}
	if first := r.w.First(); len(first) > 0 || len(r.warned) > 0 {
		t.Errorf("%+v, %d warnings", first, len(r.warned))
	}
	r.writes("vm1.xml", status(uuid, "down"))
	r.w.Want(true)
	r.next("what was left out", "vnet0")
}
