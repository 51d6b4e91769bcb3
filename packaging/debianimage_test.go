package packaging

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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
	cache := image.DefaultCacheDir()
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := os.OpenFile(filepath.Join(cache, "debian.lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close() // and with it the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, fmt.Sprintf("debian-%x", sum.Sum(nil)[:6]))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	unfinished, err := os.MkdirTemp(cache, "debian-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(unfinished, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("testdata/debian/build", unfinished).CombinedOutput(); err != nil {
		os.RemoveAll(unfinished)
		t.Fatalf("make a Debian for QEMU: %v\n%s", err, out)
	}
	if err := os.Rename(unfinished, dir); err != nil {
		t.Fatal(err)
	}
	return dir
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
