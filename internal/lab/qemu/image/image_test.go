package image

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"heddle/internal/test/testkit"
)

// TestParsePackage reads what apt-cache prints.
func TestParsePackage(t *testing.T) {
	p := parsePackage(`Package: linux-image-cloud-amd64
Source: linux-signed-amd64 (6.1.192+2)
Version: 6.1.192-2
Pre-Depends: linux-base:any (>= 4.3)
Depends: linux-image-6.1.0-56-cloud-amd64 (= 6.1.192-2), kmod | module-init-tools,debconf
Description: Linux for machines
 Depends: not a field, but text
`)
	if p == nil || p.name != "linux-image-cloud-amd64" || p.version != "6.1.192-2" {
		t.Fatalf("got %+v", p)
	}
	if want := []string{"linux-base", "linux-image-6.1.0-56-cloud-amd64", "kmod", "debconf"}; !slices.Equal(p.depends,
		want) {
		t.Errorf("depends %q, want %q", p.depends, want)
	}
	if p := parsePackage(""); p != nil {
		t.Errorf("no package gave %+v", p)
	}
}

// fakeTools puts shell scripts with the names of apt's programs before all others in the path.
func fakeTools(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
}

// TestKernel_FollowsMetaPackages: Debian's one package, Ubuntu's image and module packages, and nothing else of what
// they need.
func TestKernel_FollowsMetaPackages(t *testing.T) {
	fakeTools(t, map[string]string{"apt-cache": `
for name; do :; done
case $name in
linux-image-virtual) deps="linux-image-6.8.0-1-generic, linux-firmware" ;;
linux-image-6.8.0-1-generic) deps="kmod, linux-modules-6.8.0-1-generic" ;;
linux-modules-6.8.0-1-generic) deps="linux-image-6.8.0-1-generic" ;;
*) echo "N: No packages found" >&2; exit 100 ;;
esac
printf 'Package: %s\nVersion: 6.8\nDepends: %s\n' "$name" "$deps"
`})
	list, err := apt{}.kernel(t.Context(), []string{"linux-image-cloud-amd64", "linux-image-virtual"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range list {
		names = append(names, p.name)
	}
	if got := strings.Join(names, " "); got != "linux-image-6.8.0-1-generic linux-modules-6.8.0-1-generic" {
		t.Errorf("got %s", got)
	}
	_, err = apt{}.kernel(t.Context(), []string{"linux-image-none"})
	if err == nil || !strings.Contains(err.Error(), "linux-image-none") {
		t.Errorf("unknown package: %v", err)
	}
}

// TestFindKernel_TakesTheSeriesAskedFor: from the meta package named after it, or from the release's own when it is of
// that series.
func TestFindKernel_TakesTheSeriesAskedFor(t *testing.T) {
	fakeTools(t, map[string]string{"apt-cache": `
for name; do :; done
case $name in
linux-image-6.12-amd64) deps=linux-image-6.12.9+deb12-amd64 ;;
linux-image-amd64) deps=linux-image-6.1.0-56-amd64 ;;
linux-image-6.*) deps=kmod ;;
*) exit 100 ;;
esac
printf 'Package: %s\nVersion: 1\nDepends: %s\n' "$name" "$deps"
`})
	for series, want := range map[string]string{"": "linux-image-6.12.9+deb12-amd64",
		"6.12": "linux-image-6.12.9+deb12-amd64", "6.1": "linux-image-6.1.0-56-amd64", "6.6": ""} {
		found, err := Options{Flavour: Host, Kernel: series}.findKernel(t.Context(), apt{})
		switch {
		case want == "" && (err == nil || !strings.Contains(err.Error(), "kernel "+series)):
			t.Errorf("series %s: %v, %v", series, found, err)
		case want != "" && (err != nil || len(found) != 1 || found[0].name != want):
			t.Errorf("series %q: %v, %v, want %s", series, found, err, want)
		}
	}
	for _, o := range []Options{{Flavour: Host, Kernel: "new"}, {Flavour: Cloud, Kernel: "6.12"}} {
		if _, err := Build(t.Context(), o); err == nil || !strings.Contains(err.Error(), o.Kernel) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestBuild_FailuresSayWhatIsMissing: and leave neither an image nor work files.
func TestBuild_FailuresSayWhatIsMissing(t *testing.T) {
	known := `printf 'Package: %s\nVersion: 1\nDepends: linux-image-1\n' "$3"`
	for name, c := range map[string]struct {
		tools map[string]string
		want  string
	}{
		"no network": {map[string]string{"apt-cache": known,
			"apt-get": "echo 'E: Could not resolve host' >&2; exit 100"},
			"Could not resolve host (is there a network"},
		"no lists": {map[string]string{"apt-cache": "exit 100", "apt-get": "exit 0"}, "apt knows none"},
		"disk full": {map[string]string{"apt-cache": known, "apt-get": "touch x.deb", "dpkg-deb": "echo 'No space " +
			"left on device' >&2; exit 2"}, "600 MB"},
	} {
		t.Run(name, func(t *testing.T) {
			fakeTools(t, c.tools)
			dir := t.TempDir()
			_, err := Build(t.Context(), Options{Flavour: Cloud, CacheDir: dir})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got: %v", err)
			}
			left, _ := filepath.Glob(filepath.Join(dir, "[bc]*-*"))
			downloads, _ := filepath.Glob(filepath.Join(dir, "packages", "download-*"))
			if len(left)+len(downloads) != 0 {
				t.Errorf("left behind: %v %v", left, downloads)
			}
		})
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := Build(t.Context(), Options{Flavour: Cloud, CacheDir: t.TempDir()}); err == nil ||
		!strings.Contains(err.Error(), "apt-cache is not installed") {
		t.Errorf("without apt: %v", err)
	}
	if _, err := Build(t.Context(), Options{Flavour: "tiny", CacheDir: t.TempDir()}); err == nil ||
		!strings.Contains(err.Error(), `"tiny"`) {
		t.Errorf("unknown flavour: %v", err)
	}
}

// TestFetch_RefreshesOldLists: when the mirror has dropped the packages in the system's lists, our own lists are
// downloaded, and the version in them is used.
func TestFetch_RefreshesOldLists(t *testing.T) {
	fakeTools(t, map[string]string{
		"apt-cache": `
for name; do :; done
version=1
case "$*" in *Dir::State::lists=*) version=2 ;; esac
case $name in *-amd64) deps=linux-image-x ;; *) deps= ;; esac
printf 'Package: %s\nVersion: %s\nDepends: %s\n' "$name" "$version" "$deps"`,
		"apt-get": `
case "$*" in *update) exit 0 ;; *=1) echo "E: 404 Not Found" >&2; exit 100 ;; esac
touch some.deb`,
		"dpkg-deb": "exit 0",
	})
	cache := t.TempDir()
	root := filepath.Join(cache, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	o := Options{Flavour: Cloud, CacheDir: cache, Log: t.Logf}
	got, err := o.packages(t.Context(), t.TempDir(), root)
	if err != nil || strings.Join(got, " ") != "linux-image-x=2 busybox-static=2" {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestLock_WaitsAndGivesUp: a second holder waits for the first, and not longer than its context.
func TestLock_WaitsAndGivesUp(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, file); err == nil {
		t.Error("two hold the lock")
	}
	got := make(chan error, 1)
	go func() {
		again, err := lock(t.Context(), file)
		if err == nil {
			again()
		}
		got <- err
	}()
	unlock()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// TestBuild_OnceForAll builds the real image in a fresh cache from two callers at once: one builds, both get the same,
// and a dead build's directory goes. Downloads are shared with the default cache.
func TestBuild_OnceForAll(t *testing.T) {
	testkit.Root(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if _, err := Build(ctx, Options{Flavour: Cloud}); err != nil {
		testkit.Missing(t, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	dir := t.TempDir()
	dead := filepath.Join(dir, "build-cloud-dead")
	err := os.Symlink(filepath.Join(DefaultCacheDir(), "packages"), filepath.Join(dir, "packages"))
	if err == nil {
		err = os.Mkdir(dead, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var log []string
	o := Options{Flavour: Cloud, CacheDir: dir, Log: func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		log = append(log, fmt.Sprintf(format, args...))
	}}
	var images [2]*Image
	var errs [2]error
	var both sync.WaitGroup
	for i := range images {
		both.Go(func() { images[i], errs[i] = Build(ctx, o) })
	}
	both.Wait()
	if errs[0] != nil || errs[1] != nil || images[0].Initrd != images[1].Initrd {
		t.Fatalf("got %v %v", errs, images)
	}
	if n := strings.Count(strings.Join(log, "\n"), "making the initramfs"); n != 1 {
		t.Errorf("built %d times: %q", n, log)
	}
	if _, err := os.Stat(dead); err == nil {
		t.Error("the dead build's directory is still there")
	}
	if !slices.Contains(images[0].Modules, "8021q") || images[0].Release == "" || len(images[0].Packages) < 2 {
		t.Errorf("image: %+v", images[0])
	}
}
