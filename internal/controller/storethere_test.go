package controller

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heddle/internal/api"
)

// refusal is why a controller does not start; the test fails where it does.
func refusalOf(t *testing.T, o Options) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started := false
	o.Ready = func() { started = true; cancel() }
	err := Run(ctx, o)
	if started || err == nil || errors.Is(err, context.Canceled) {
		t.Fatalf("it starts: %v", err)
	}
	return err
}

// logFilesOf are the files of the log of a controller's etcd.
func logFilesOf(t *testing.T, o Options) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(o.Dir, etcdDir, "member", "wal", "*.wal"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%q, %v", names, err)
	}
	return names
}

// overwrite gives each of the files another content.
func overwrite(t *testing.T, names []string, content []byte) {
	t.Helper()
	for _, name := range names {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A controller with an identity and without its store, or with one that is damaged or another controller's, does not
// start, changes nothing, and says what to do; with its own store it starts again.
func TestS127_AControllerWithoutItsStoreDoesNotStart(t *testing.T) {
	noise := make([]byte, 4096)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	for _, peers := range []string{noPeers, ""} {
		o := optionsIn(t, t.TempDir())
		o.ListenPeers = peers
		other := optionsIn(t, t.TempDir())
		for _, one := range []Options{o, other} {
			while(t, one, func(f *api.Fleet) {
				if _, err := f.Define(t.Context(), api.Define{File: "f", Content: someText}); err != nil {
					t.Fatal(err)
				}
			})
		}
		etcd, aside := filepath.Join(o.Dir, etcdDir), filepath.Join(t.TempDir(), "etcd")
		for name, c := range map[string]struct {
			damage func(t *testing.T)
			want   []string
		}{
			"gone": {func(*testing.T) {}, []string{"store is missing", "a new, empty cluster", "restore"}},
			"an empty directory": {func(t *testing.T) {
				if err := os.Mkdir(etcd, 0o700); err != nil {
					t.Fatal(err)
				}
			}, []string{"store is missing"}},
			"no log": {func(t *testing.T) {
				if err := os.CopyFS(etcd, os.DirFS(aside)); err != nil {
					t.Fatal(err)
				}
				if err := os.RemoveAll(filepath.Join(etcd, "member", "wal")); err != nil {
					t.Fatal(err)
				}
			}, []string{"store is missing", "has no log of etcd"}},
			"an empty log": {func(t *testing.T) {
				if err := os.CopyFS(etcd, os.DirFS(aside)); err != nil {
					t.Fatal(err)
				}
				overwrite(t, logFilesOf(t, o), nil)
			}, []string{"is damaged: it is empty", "Nothing was changed", "restore"}},
			"noise": {func(t *testing.T) {
				if err := os.CopyFS(etcd, os.DirFS(aside)); err != nil {
					t.Fatal(err)
				}
				overwrite(t, logFilesOf(t, o), noise)
			}, []string{"is damaged", "Nothing was changed"}},
			"another controller's": {func(t *testing.T) {
				if err := os.CopyFS(etcd, os.DirFS(filepath.Join(other.Dir, etcdDir))); err != nil {
					t.Fatal(err)
				}
			}, []string{"of cluster"}},
		} {
			t.Run(name+" peers="+peers, func(t *testing.T) {
				if err := os.Rename(etcd, aside); err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := errors.Join(os.RemoveAll(etcd), os.Rename(aside, etcd)); err != nil {
						t.Fatal(err)
					}
				}()
				c.damage(t)
				before := filesOf(t, o.Dir)
				err := refusalOf(t, o)
				for _, part := range c.want {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%q is not in %q", part, err)
					}
				}
				if now := filesOf(t, o.Dir); !slices.Equal(now, before) {
					t.Errorf("there is %q, before there was %q", now, before)
				}
			})
		}
		while(t, o, func(f *api.Fleet) {
			if d, err := f.Definition(t.Context()); err != nil || !strings.Contains(d.Content, "dvs") {
				t.Errorf("with its own store: %+v, %v", d, err)
			}
		})
	}
}

// A controller that was stopped before it had a store founds its cluster when it starts again.
func TestAFoundingThatWasBrokenOffGoesOn(t *testing.T) {
	o := optionsIn(t, t.TempDir())
	o.ListenPeers = ""
	s, err := selfOf(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.firstAuthority(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	while(t, o, func(*api.Fleet) {})
	if there, err := s.has(foundingFile); there || err != nil {
		t.Errorf("%s is there: %v, %v", foundingFile, there, err)
	}
	if err := os.RemoveAll(s.file(etcdDir)); err != nil {
		t.Fatal(err)
	}
	refusalOf(t, o)
}
