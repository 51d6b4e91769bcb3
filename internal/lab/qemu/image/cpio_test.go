package image

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"heddle/internal/test/testkit"
)

// TestArchive_UnpacksWithBusybox unpacks the archive with a cpio that is not ours, and compares the result.
func TestArchive_UnpacksWithBusybox(t *testing.T) {
	testkit.Tool(t, "busybox")
	host := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(host, []byte("from the host"), 0o750); err != nil {
		t.Fatal(err)
	}
	var a Archive
	a.File("etc/deep/odd", 0o640, []byte("12345"))
	a.File("/empty", 0o600, nil)
	a.Symlink("bin/link", "../etc/deep/odd")
	a.Dir("run")
	if err := a.HostFile("bin/tool", host); err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	n, err := a.WriteTo(&archive)
	if err != nil || n != int64(archive.Len()) || n%512 != 0 {
		t.Fatalf("WriteTo gave %d, %v for %d bytes", n, err, archive.Len())
	}
	dir := t.TempDir()
	cmd := exec.Command("busybox", "cpio", "-i", "-m")
	cmd.Dir, cmd.Stdin = dir, &archive
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cpio: %v: %s", err, out)
	}
	for name, want := range map[string]struct {
		mode os.FileMode
		data string
	}{
		"etc/deep/odd": {0o640, "12345"}, "empty": {0o600, ""}, "bin/tool": {0o750, "from the host"},
		"bin/link": {0o640, "12345"},
	} {
		t.Run(name, func(t *testing.T) {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				t.Error(err)
				return
			}
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || string(data) != want.data || info.Mode().Perm() != want.mode {
				t.Errorf("%s: %q %v %v, want %q %v", name, data, info.Mode(), err, want.data, want.mode)
			}
		})
	}
	if info, err := os.Stat(filepath.Join(dir, "run")); err != nil || !info.IsDir() {
		t.Errorf("run is not a directory: %v", err)
	}
}

// TestArchive_SameEntriesSameBytes: images of one recipe can be compared.
func TestArchive_SameEntriesSameBytes(t *testing.T) {
	write := func(names ...string) string {
		var a Archive
		for _, n := range names {
			a.File(n, 0o644, []byte(n))
		}
		var b bytes.Buffer
		if _, err := a.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if write("b/x", "a", "b/a") != write("a", "b/a", "b/x") {
		t.Error("the order of adding shows in the archive")
	}
	if write("a") == write("b") {
		t.Error("different entries give the same archive")
	}
}

// TestArchive_RefusesWhatIsNoFile: a missing file or a directory is an error when it is added.
func TestArchive_RefusesWhatIsNoFile(t *testing.T) {
	var a Archive
	dir := t.TempDir()
	if err := a.HostFile("x", filepath.Join(dir, "missing")); err == nil {
		t.Error("a missing file was accepted")
	}
	if err := a.HostFile("x", dir); err == nil {
		t.Error("a directory was accepted")
	}
}
