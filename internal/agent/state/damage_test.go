package state

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/host/ownfile"
	"heddle/internal/plan"
)

func saved(t *testing.T) (dir, path string, text []byte) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "a")
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	st := &State{Format: stateFormat, Config: Source{File: "f", Content: "switches: [{name: lab}]\n"},
		Numbers: []Number{{plan.PortID{Switch: "lab", Name: "vm"}, 7}},
		Devices: Devices{Place: "here 17",
			Held: []Held{{ID: plan.PortID{Switch: "lab", Name: "vm"}, Device: "tap0", Index: 5, WasUp: true}}}}
	if err := s.Save(st); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "state.json")
	if text, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return dir, path, text
}

// A single flipped bit, for example in a port's number or a device's index, would give another valid state.
func TestLoad_FindsEverySingleFlip(t *testing.T) {
	dir, path, text := saved(t)
	for i := range text {
		for bit := range 8 {
			flipped := append([]byte{}, text...)
			flipped[i] ^= 1 << bit
			if err := os.WriteFile(path, flipped, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := (&Store{dir: dir}).Load()
			if err == nil || !strings.Contains(err.Error(), "restore the file, or remove it") {
				t.Fatalf("bit %d of byte %d: %v", bit, i, err)
			}
		}
	}
}

func TestLoad_SaysThatTheChecksumIsWrong(t *testing.T) {
	dir, path, text := saved(t)
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), `"number":7`, `"number":8`, 1)),
		0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Store{dir: dir}).Load(); !errors.Is(err, ownfile.ErrSum) {
		t.Errorf("got %v", err)
	}
}

// A version without checksums wrote the same object without its last field, and can read the file with it.
func TestLoad_ReadsAFileWithoutChecksum(t *testing.T) {
	dir, path, text := saved(t)
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil || fields["crc32c"] == nil {
		t.Fatalf("%s: %v", text, err)
	}
	old := append(text[:strings.LastIndex(string(text), `,"crc32c"`):len(text)], "}\n"...)
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Store{dir: dir}
	st, err := s.Load()
	if err != nil || len(st.Numbers) != 1 {
		t.Fatalf("%+v %v", st, err)
	}
	if err := s.Save(st); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(path); !strings.Contains(string(b), `"crc32c"`) {
		t.Errorf("written again without a checksum: %s", b)
	}
}

func TestStore_FollowsNoLinks(t *testing.T) {
	dir, path, text := saved(t)
	victim := filepath.Join(t.TempDir(), "victim")
	if err := errors.Join(os.WriteFile(victim, text, 0o600), os.Symlink(victim, path+".new")); err != nil {
		t.Fatal(err)
	}
	s := &Store{dir: dir}
	st, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	st.Place = "there"
	if err := s.Save(st); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(victim); string(b) != string(text) {
		t.Errorf("written through a link: %s", b)
	}
	if err := errors.Join(os.Remove(path), os.Symlink(victim, path)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("read through a link: %v", err)
	}
}

func TestOpen_RefusesADirectoryThatOthersMayWrite(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "chmod go-w "+dir) {
		t.Errorf("got %v", err)
	}
}
