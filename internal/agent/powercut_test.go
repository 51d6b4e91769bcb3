package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/agent/adopt"
	"heddle/internal/agent/segments"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/host/keystore"
	"heddle/internal/host/ownfile"
	"heddle/internal/spec"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/powercut"
)

// written is something that a command writes on the host.
type written struct {
	name string
	// before is made and on the disk when the change begins; nil for nothing.
	before func(*rig) error
	change func(*rig) error
	// left is what a restart reads; nil for what the state file says.
	left func(dir string) (string, error)
	// tidies: when it is done, what is not needed any more is removed; an error of that says so.
	tidies bool
}

// asAfter is the configuration with another port group, which no port is in: the kernel has nothing to do.
func asAfter() string {
	return strings.Replace(base, "- {name: web", "- {name: more}\n      - {name: web", 1)
}

// writing are the changes that commands and controllers have the host write.
func writing() []written {
	ephemeral := spec.Port{Name: "vm/eth0", PortGroup: "web", Device: "tap0"}
	connect := func(r *rig) error { return r.connect(ephemeral) }
	take := func(revision int64) func(*rig) error {
		return func(r *rig) error {
			return r.command(func(ctx context.Context) error {
				problems, err := r.slicing.Take(ctx, &state.Slice{Epoch: 1, Revision: revision})
				if len(problems) > 0 {
					err = errors.Join(err, fmt.Errorf("%q", problems))
				}
				return err
			})
		}
	}
	return []written{
		{name: "apply", change: func(r *rig) error {
			return r.apply(strings.Replace(base, "access: 100", "access: 101", 1))
		}},
		{name: "apply what no port has", change: func(r *rig) error { return r.apply(asAfter()) }},
		{name: "connect", change: connect},
		{name: "disconnect", before: connect, change: func(r *rig) error {
			return r.disconnect(api.Disconnect{Port: ephemeral.Name})
		}},
		{name: "block", change: func(r *rig) error { return r.block("a", true) }},
		{name: "prepare for a guest", change: func(r *rig) error { return r.connectIncoming(ephemeral) }},
		{name: "expect a guest", change: func(r *rig) error {
			return r.command(func(ctx context.Context) error { return r.commands.Expect(ctx, api.Expect{Guest: "vm"}) })
		}},
		{name: "the first revision", change: take(1)},
		{name: "a revision that changes nothing", before: take(1), change: take(2)},
		{name: "leave a cluster", before: take(1), change: func(r *rig) error {
			none := func(string) []spec.TunnelPeer { return nil }
			return r.command(func(ctx context.Context) error { return r.slicing.own(ctx, "c", none) })
		}},
		{name: "keep a change that was tried", before: func(r *rig) error {
			j, err := adopt.OpenJournal(r.dir)
			if err == nil {
				j.Change = &adopt.Change{Phase: adopt.Waiting, What: "apply"}
				err = j.Save()
			}
			return err
		}, change: func(r *rig) error {
			j, err := adopt.OpenJournal(r.dir)
			if err == nil {
				j.Change = nil
				err = j.Save()
			}
			return err
		}, left: func(dir string) (string, error) {
			j, err := adopt.OpenJournal(dir)
			return fmt.Sprint(err == nil && j.Change != nil), err
		}},
		{name: "become a host of a cluster", change: becomes, left: identityLeft, tidies: true},
		{name: "forget the identity of a host", before: becomes, change: func(r *rig) error {
			d, err := keystore.Open(filepath.Join(r.dir, "identity"))
			if err != nil {
				return err
			}
			return d.Forget()
		}, left: identityLeft, tidies: true},
		{name: "forget the segments of a cluster", before: func(r *rig) error {
			return ownfile.Replace(filepath.Join(r.dir, "segments"), []byte{})
		}, change: func(r *rig) error {
			k := segments.New(segments.Options{Dir: r.dir, Changed: func() {}, Log: slog.New(slog.DiscardHandler)})
			return k.Forget()
		}, left: func(dir string) (string, error) {
			_, err := os.Stat(filepath.Join(dir, "segments"))
			return fmt.Sprint(err == nil), nil
		}},
	}
}

// becomes writes the identity of a host.
func becomes(r *rig) error {
	return joined(filepath.Join(r.dir, "identity"), time.Now().Add(time.Hour))
}

// identityLeft is whether the host is in a cluster.
func identityLeft(dir string) (string, error) {
	d, err := keystore.Open(filepath.Join(dir, "identity"))
	if err != nil {
		return "", err
	}
	_, err = d.Load()
	if errors.Is(err, keystore.ErrNone) {
		return "in no cluster", nil
	}
	return "in a cluster", err
}

// stateLeft is what of the state file was asked for by commands and controllers.
func stateLeft(dir string) (string, error) {
	store, err := state.Open(dir)
	if err != nil {
		return "", err
	}
	st, err := store.Load()
	if err != nil {
		return "", err
	}
	b, err := json.Marshal([]any{st.Config.Content, st.Ports, st.Overrides, slices.Sorted(maps.Keys(st.Expected)),
		st.Slice, len(st.Waits)})
	return string(b), err
}

// The child makes one change when it is told to, and says whether that was acknowledged.
func TestPowerCutChild(t *testing.T) {
	powercut.Child(t, func(name, dir string) (func() error, error) {
		all := writing()
		w := all[slices.IndexFunc(all, func(w written) bool { return w.name == name })]
		r := &rig{t: t, dev: newFakeDevices(), kernel: &fakeKernel{}, dir: dir}
		err := r.restart(base)
		if err == nil && w.before != nil {
			err = w.before(r)
		}
		return func() error { return w.change(r) }, err
	})
}

// Whatever step of a change the power is taken at, the host begins with what it had before the change or with all of
// it; a change that was acknowledged is there.
func TestS114_ALossOfPowerTakesBackNothingThatWasAcknowledged(t *testing.T) {
	disk := powercut.NewDisk(t)
	for _, w := range writing() {
		t.Run(w.name, func(t *testing.T) {
			left := w.left
			if left == nil {
				left = stateLeft
			}
			disk.Walk(t, "TestPowerCutChild", powercut.Change{Name: w.name, Left: left, Tidies: w.tidies})
		})
	}
}

// A state directory that takes nothing more has changes refused, also those that the kernel needs nothing for: what is
// not saved is not acknowledged, and is not there. When there is room again, they are made.
func TestS114_WhatCannotBeSavedIsRefused(t *testing.T) {
	testkit.Never(t)
	for _, w := range writing() {
		if w.left != nil {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			r := newRig(t, base)
			if w.before != nil {
				if err := w.before(r); err != nil {
					t.Fatal(err)
				}
			}
			before, err := stateLeft(r.dir)
			if err != nil {
				t.Fatal(err)
			}
			inTheWay := filepath.Join(r.dir, "state.json.new")
			if err := os.Mkdir(inTheWay, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := w.change(r); err == nil {
				t.Error("it was acknowledged")
			}
			if err := os.Remove(inTheWay); err != nil {
				t.Fatal(err)
			}
			r.settler.settle()
			if left, err := stateLeft(r.dir); err != nil || left != before {
				t.Errorf("after the refusal: %v\n%s\nbefore:\n%s", err, left, before)
			}
			if err := w.change(r); err != nil {
				t.Error(err)
			}
			if left, err := stateLeft(r.dir); err != nil || left == before {
				t.Errorf("with room: %v\n%s", err, left)
			}
		})
	}
}
