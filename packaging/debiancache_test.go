package packaging

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// present are the names in a directory.
func present(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// A run that was killed leaves its half image, which the next run removes; finished images of other recipes stay.
func TestTheDebianCacheKeepsFinishedImagesAlone(t *testing.T) {
	cache := t.TempDir()
	for _, dir := range []string{"debian-3141592653/root", "debian-unfinished-27", "debian-0123456789ab", "full-27"} {
		if err := os.MkdirAll(filepath.Join(cache, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	broken := errors.New("no space left")
	fails := func(dir string, _ *os.File) error {
		return errors.Join(broken, os.Mkdir(filepath.Join(dir, "root"), 0o755))
	}
	if _, err := cachedDebian(cache, "ba9876543210", fails); !errors.Is(err, broken) {
		t.Errorf("a build that fails: %v", err)
	}
	if have := present(t, cache); have != "debian-0123456789ab debian.lock full-27" {
		t.Errorf("after a build that fails: %s", have)
	}
	builds := 0
	makes := func(dir string, lock *os.File) error {
		builds++
		other, err := os.Open(lock.Name())
		if err != nil {
			return err
		}
		defer other.Close()
		if err := syscall.Flock(int(other.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, syscall.EAGAIN) {
			t.Errorf("another process may build, too: %v", err)
		}
		return os.WriteFile(filepath.Join(dir, "disk.img"), nil, 0o644)
	}
	for range 2 {
		dir, err := cachedDebian(cache, "ba9876543210", makes)
		if err != nil || present(t, dir) != "disk.img" || builds != 1 {
			t.Fatalf("the image: %v, made %d times", err, builds)
		}
	}
	if have := present(t, cache); have != "debian-0123456789ab debian-ba9876543210 debian.lock full-27" {
		t.Errorf("after a build: %s", have)
	}
}

// A mirror that cannot be reached is told from a recipe that fails.
func TestAMirrorThatIsAwayIsKnown(t *testing.T) {
	if _, err := os.Stat("/usr/lib/apt/apt-helper"); err != nil {
		t.Skip("there is no apt here, and none is needed")
	}
	direct := filepath.Join(t.TempDir(), "apt.conf")
	if err := os.WriteFile(direct, []byte("Acquire::http::Proxy::127.0.0.1 \"DIRECT\"; Acquire::Retries \"0\";\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("APT_CONFIG", direct)
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("Suite: stable\n"))
	}))
	defer mirror.Close()
	if !downloads(t, mirror.URL+"/InRelease") {
		t.Error("a mirror that answers is not reached")
	}
	mirror.Close()
	if downloads(t, mirror.URL+"/InRelease") {
		t.Error("a mirror that does not answer is reached")
	}
}
