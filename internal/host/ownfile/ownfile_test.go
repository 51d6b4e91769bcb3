package ownfile

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"heddle/internal/test/testkit"
)

func TestMakeDir_RefusesWhatOthersCanChange(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "a", "b")
	if err := MakeDir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for mode, ok := range map[os.FileMode]bool{0o700: true, 0o755: true, 0o770: false, 0o707: false, 0o777: false,
		0o777 | os.ModeSticky: false} {
		chmod(t, dir, mode)
		err := MakeDir(dir, 0o700)
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "chmod go-w "+dir) {
			t.Errorf("mode %v: %v", mode, err)
		}
	}
	chmod(t, dir, 0o700)
	above := filepath.Dir(dir)
	for mode, ok := range map[os.FileMode]bool{0o777: false, 0o777 | os.ModeSticky: true} {
		chmod(t, above, mode)
		if err := MakeDir(dir, 0o700); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "chmod go-w "+
			above) {
			t.Errorf("in a directory of mode %v: %v", mode, err)
		}
	}
	file := filepath.Join(base, "file")
	write(t, file, "x")
	if err := MakeDir(file, 0o700); err == nil {
		t.Error("a file is taken for a directory")
	}
}

func TestForeignOwnersAreRefused(t *testing.T) {
	testkit.Root(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	write(t, file, "x")
	if err := os.Chown(file, 1234, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(file); err == nil || !strings.Contains(err.Error(), "belongs to the user with id 1234") {
		t.Errorf("a file of another user: %v", err)
	}
	if err := os.Chown(dir, 1234, 0); err != nil {
		t.Fatal(err)
	}
	if err := MakeDir(dir, 0o700); err == nil || !strings.Contains(err.Error(), "belongs to the user with id 1234") ||
		!strings.Contains(err.Error(), "chown root "+dir) {
		t.Errorf("a directory of another user: %v", err)
	}
}

func TestLinksAreNotFollowed(t *testing.T) {
	dir := t.TempDir()
	victim, path := filepath.Join(dir, "victim"), filepath.Join(dir, "f")
	write(t, victim, "precious")
	for _, name := range []string{path, path + ".new"} {
		if err := os.Symlink(victim, name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "is a symbolic link") {
		t.Errorf("read through a link: %v", err)
	}
	if _, err := Open(path, os.O_RDWR|os.O_CREATE); err == nil || !strings.Contains(err.Error(), "is a symbolic link") {
		t.Errorf("opened through a link: %v", err)
	}
	if err := Replace(path, []byte("mine")); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(victim); string(got) != "precious" {
		t.Errorf("written through a link: %q", got)
	}
	if got, err := Read(path); err != nil || string(got) != "mine" {
		t.Errorf("%q %v", got, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.new")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestPipesAreNotWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Error(err)
	}
}

// Every flipped bit and every changed digit is found, or gives invalid JSON.
func TestSeal_FindsEveryFlip(t *testing.T) {
	text := Seal([]byte(`{"format":1,"ports":[{"name":"vm1","vlan":100}],"held":null`))
	if err := CheckSeal(text); err != nil || !json.Valid(text) {
		t.Fatalf("%s: %v", text, err)
	}
	for i := range text {
		for bit := range 8 {
			flipped := append([]byte{}, text...)
			flipped[i] ^= 1 << bit
			if CheckSeal(flipped) == nil && json.Valid(flipped) {
				t.Errorf("not found: %s", flipped)
			}
		}
		if text[i] >= '0' && text[i] <= '9' {
			changed := append([]byte{}, text...)
			changed[i] = '0' + (text[i]-'0'+1)%10
			if err := CheckSeal(changed); !errors.Is(err, ErrSum) {
				t.Errorf("not found: %s", changed)
			}
		}
	}
	for _, old := range []string{`{"format":1,"held":[]}` + "\n", `{"format":1,"held":null}` + "\n"} {
		if err := CheckSeal([]byte(old)); err != nil {
			t.Errorf("a file of an older program is refused: %v", err)
		}
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
