package controller

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/host/keystore"
	"heddle/internal/platform/pki"
	"heddle/internal/test/testkit"
)

// optionsIn are those of a controller that stays alone, with free ports.
func optionsIn(t *testing.T, dir string) Options {
	t.Helper()
	at := testkit.Unused(t)
	return Options{Dir: filepath.Join(dir, "data"), Listen: at, Advertise: at,
		ListenPeers: noPeers, Socket: filepath.Join(dir, "run", "api.sock"), Name: "test", Controller: "c1",
		Log: slog.New(slog.DiscardHandler)}
}

// while runs a controller while do runs.
func while(t *testing.T, o Options, do func(*api.Fleet)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	o.Ready = func() { close(ready) }
	go func() { ended <- Run(ctx, o) }()
	select {
	case <-ready:
		do(api.NewFleet(o.Socket))
	case err := <-ended:
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// filesOf are the names of what a directory has.
func filesOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		names = append(names, f.Name())
	}
	return names
}

const someText = "switches: [{name: dvs, portGroups: [{name: web}]}]\n"

// A restore that can't be done changes nothing; one that is done begins another epoch.
func TestRestore_IsDoneOrChangesNothing(t *testing.T) {
	dir := t.TempDir()
	o := optionsIn(t, dir)
	file := filepath.Join(dir, "state.db")
	refused := func(what string, r Restore, o Options, want string) {
		t.Helper()
		if _, err := RestoreState(t.Context(), o, r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	while(t, o, func(f *api.Fleet) {
		if _, err := f.Define(t.Context(), api.Define{File: "f", Content: someText}); err != nil {
			t.Fatal(err)
		}
		to, err := os.Create(file)
		if err == nil {
			_, err = f.Snapshot(t.Context(), to)
		}
		if err = errors.Join(err, to.Close()); err != nil {
			t.Fatal(err)
		}
		refused("while it runs", Restore{File: file}, o, "stop it first")
	})
	refused("from nothing", Restore{}, o, "say what the state is restored from")
	refused("from both", Restore{File: file, Force: true}, o, "say what the state is restored from")
	refused("from a file that there is not", Restore{File: file + "x"}, o, "no such file")
	refused("from another file", Restore{File: filepath.Join(o.Dir, "id")}, o, "restoring")
	fresh := optionsIn(t, t.TempDir())
	refused("without a secret", Restore{File: file}, fresh, "--secret")
	other := filepath.Join(t.TempDir(), "secret")
	if err := keystore.WriteSecret(other, pki.NewSecret().Content()); err != nil {
		t.Fatal(err)
	}
	refused("with another cluster's secret", Restore{File: file, Secret: other}, fresh, "another secret")

	if _, err := RestoreState(t.Context(), fresh, Restore{File: file,
		Secret: filepath.Join(o.Dir, secretFile)}); err != nil {
		t.Errorf("with the cluster's secret, after the wrong one: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	before := filesOf(t, o.Dir)
	for _, r := range []Restore{{File: file}, {Force: true}} {
		if _, err := RestoreState(ended, o, r); err == nil || !strings.HasPrefix(err.Error(), "interrupted: ") ||
			!strings.Contains(err.Error(), "repeat the command") {
			t.Errorf("interrupted: %v", err)
		}
	}
	if now := filesOf(t, o.Dir); !slices.Equal(now, before) {
		t.Errorf("after an interrupted restore there is %q, before there was %q", now, before)
	}
	var cluster string
	var epoch int64
	while(t, o, func(f *api.Fleet) { // what was refused has changed nothing
		list, err := f.Controllers(t.Context())
		if err != nil || len(list.Controllers) != 1 || list.Epoch != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		cluster, epoch = list.Cluster, list.Epoch
	})
	while(t, fresh, func(f *api.Fleet) {
		list, err := f.Controllers(t.Context())
		if err != nil || list.Cluster != cluster || list.Epoch <= epoch || len(list.Controllers) != 1 {
			t.Errorf("%+v, %v", list, err)
		}
		if d, err := f.Definition(t.Context()); err != nil || !strings.Contains(d.Content, "web") {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// A controller whose cluster has something in it does not join another one, nor does one join over its data.
func TestJoin_ThrowsNothingAway(t *testing.T) {
	o := optionsIn(t, t.TempDir())
	const token = "hc1.whatever"
	while(t, o, func(f *api.Fleet) {
		if _, err := f.Define(t.Context(), api.Define{File: "f", Content: someText}); err != nil {
			t.Fatal(err)
		}
		q := api.JoinCluster{Controller: "192.0.2.1:7411", Token: token}
		if _, err := f.JoinCluster(t.Context(), q); err == nil ||
			!strings.Contains(err.Error(), "has a cluster of its own, with 0 hosts, 2 objects") {
			t.Errorf("joined: %v", err)
		}
		if _, err := f.ControllerToken(t.Context(), api.ControllerTerms{}); err == nil ||
			!strings.Contains(err.Error(), "--listen-peers none") {
			t.Errorf("a token of a controller that stays alone: %v", err)
		}
	})
	if _, err := JoinOffline(t.Context(), o, Join{Controller: "192.0.2.1:7411", Token: token}); err == nil ||
		!strings.Contains(err.Error(), "has the data of a controller") {
		t.Errorf("joined: %v", err)
	}
}

// A restore names the tokens of the snapshot, which count when somebody has confirmed them, or at once where the
// command says so.
func TestS124_ARestoreNamesWhatItCannotKnow(t *testing.T) {
	o := optionsIn(t, t.TempDir())
	file := filepath.Join(t.TempDir(), "state.db")
	var id string
	while(t, o, func(f *api.Fleet) {
		token, err := f.CreateToken(t.Context(), api.TokenTerms{Name: "ann", Role: "admin", Lasts: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		id = token.ID
		to, err := os.Create(file)
		if err == nil {
			_, err = f.Snapshot(t.Context(), to)
		}
		if err = errors.Join(err, to.Close()); err != nil {
			t.Fatal(err)
		}
	})
	for _, all := range []bool{false, true} {
		fresh := optionsIn(t, t.TempDir())
		out, err := RestoreState(t.Context(), fresh, Restore{File: file, Secret: filepath.Join(o.Dir, secretFile),
			ConfirmAll: all})
		if err != nil || slices.Equal(out.UnconfirmedTokens, []string{"ann (" + id + ")"}) == all {
			t.Fatalf("confirmed at once %v: %+v, %v", all, out, err)
		}
		while(t, fresh, func(f *api.Fleet) {
			list, err := f.ConfirmRestored(t.Context(), api.ConfirmRestored{})
			if err != nil || (len(list.Waiting) == 0) != all {
				t.Errorf("confirmed at once %v: %+v, %v", all, list, err)
			}
			status, err := f.Status(t.Context())
			if err != nil || slices.ContainsFunc(status.Findings, func(h api.HealthFinding) bool {
				return h.Check == "restored"
			}) == all {
				t.Errorf("confirmed at once %v: %+v, %v", all, status.Findings, err)
			}
			list, err = f.ConfirmRestored(t.Context(), api.ConfirmRestored{All: true})
			if err != nil || len(list.Waiting) != 0 {
				t.Errorf("%+v, %v", list, err)
			}
		})
	}
}
