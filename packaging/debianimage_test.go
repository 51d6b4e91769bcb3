package packaging

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	"heddle/internal/lab/qemu/image"
	"heddle/internal/test/testkit"
)

// debianRecipe are the files that a Debian for QEMU is made from.
func debianRecipe() []string {
	return []string{"testdata/debian/build", "testdata/debian/serve", "testdata/debian/serve.service"}
}

// debianImage is the directory of a Debian for QEMU (disk.img, vmlinuz, initrd.img), which nobody may change. It is
// made once, beside the other images of guests, and again when its recipe has changed.
func debianImage(t *testing.T) string {
	t.Helper()
	testkit.Tool(t, "mmdebstrap", "mke2fs")
	sum := sha256.New()
	for _, path := range debianRecipe() {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sum.Write(text)
	}
	dir, err := cachedDebian(image.DefaultCacheDir(), fmt.Sprintf("%x", sum.Sum(nil)[:6]), buildDebian)
	if err != nil && !downloads(t, debianMirror) {
		testkit.Missing(t, "the Debian mirror, "+debianMirror+", to make a guest from: "+err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// buildDebian makes the image in a directory. The lock is held until the last process of it has ended, even if this one
// is killed before.
func buildDebian(dir string, lock *os.File) error {
	cmd := exec.Command("testdata/debian/build", dir)
	cmd.ExtraFiles = []*os.File{lock}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make a Debian for QEMU: %w\n%s", err, out)
	}
	return nil
}

// cachedDebian is the directory of the image with the sum in the cache, which build makes first if it is not there. Of
// several processes one makes it, and the others wait.
func cachedDebian(cache, sum string, build func(dir string, lock *os.File) error) (string, error) {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(filepath.Join(cache, "debian.lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close() // and with it the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	if err := removeUnfinished(cache); err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "debian-"+sum)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	unfinished, err := os.MkdirTemp(cache, "debian-unfinished-")
	if err != nil {
		return "", err
	}
	err = os.Chmod(unfinished, 0o755)
	if err == nil {
		err = build(unfinished, lock)
	}
	if err == nil {
		err = os.Rename(unfinished, dir)
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(unfinished))
	}
	return dir, nil
}

// removeUnfinished removes what runs that were killed have left in the cache. The caller has the lock: nobody makes an
// image. A finished one has a sum for its name, and may be in use.
func removeUnfinished(cache string) error {
	finished := regexp.MustCompile(`^debian-[0-9a-f]{12}$`)
	all, err := filepath.Glob(filepath.Join(cache, "debian-*"))
	for _, dir := range all {
		if !finished.MatchString(filepath.Base(dir)) {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	return err
}

// debianMirror is a file of the mirror that the recipe's packages come from.
const debianMirror = "http://deb.debian.org/debian/dists/trixie/InRelease"

// downloads reports whether apt, with the proxies of this machine, gets a file. Without apt that is not known, and no
// excuse.
func downloads(t *testing.T, url string) bool {
	t.Helper()
	err := exec.Command("/usr/lib/apt/apt-helper", "download-file", url, filepath.Join(t.TempDir(), "file")).Run()
	var failed *exec.ExitError
	return !errors.As(err, &failed)
}

// copySparse copies a disk, of which most was never written.
func copySparse(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	about, err := in.Stat()
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	const block = 1 << 20
	buffer, zero := make([]byte, block), [block]byte{}
	for at := int64(0); at < about.Size(); at += block {
		n, err := in.ReadAt(buffer, at)
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
		if [block]byte(buffer) == zero || n == 0 {
			continue
		}
		if _, err := out.WriteAt(buffer[:n], at); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Truncate(about.Size()); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
