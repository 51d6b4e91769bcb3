package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func history(t *testing.T) History {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "agent"))
	if err != nil {
		t.Fatal(err)
	}
	return s.History()
}

func keep(t *testing.T, h History, content string) {
	t.Helper()
	src := Source{File: "/etc/heddle/heddle.yaml", Content: content, By: "apply /etc/heddle/heddle.yaml"}
	if err := h.Keep(src, time.Unix(1000, 0)); err != nil {
		t.Fatal(err)
	}
}

func TestHistory_NumbersVersionsAndLeavesOutWhatIsTheSame(t *testing.T) {
	h := history(t)
	if list, err := h.List(); err != nil || len(list) != 0 {
		t.Fatalf("a new history: %v, %v", list, err)
	}
	for _, content := range []string{"a: 1\n", "a: 1\n", "a: 2\n", "a: 1\n"} {
		keep(t, h, content)
	}
	list, err := h.List()
	if err != nil || len(list) != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	for i, want := range []string{"a: 1\n", "a: 2\n", "a: 1\n"} {
		v, text, err := h.Get(i + 1)
		if err != nil || string(text) != want || v.Number != i+1 || v.By != "apply /etc/heddle/heddle.yaml" ||
			!v.At.Equal(time.Unix(1000, 0)) || v.Bytes != len(want) {
			t.Errorf("version %d: %+v %q, %v", i+1, v, text, err)
		}
	}
	if _, _, err := h.Get(4); !errors.Is(err, ErrNoVersion) {
		t.Errorf("a version that does not exist: %v", err)
	}
}

func TestHistory_IsBounded(t *testing.T) {
	h := history(t)
	for i := range mostVersions + 3 {
		keep(t, h, fmt.Sprintf("a: %d\n", i))
	}
	list, err := h.List()
	if err != nil || len(list) != mostVersions || list[0].Number != 4 {
		t.Fatalf("%d versions from %d, %v", len(list), list[0].Number, err)
	}
	if files, err := os.ReadDir(h.dir); err != nil || len(files) != mostVersions+1 {
		t.Errorf("%d files, %v", len(files), err)
	}
	large := []Version{{Number: 1, Bytes: 1}, {Number: 2, Bytes: mostVersionBytes}, {Number: 3, Bytes: 1}}
	if kept, gone := bounded(large); len(kept) != 1 || kept[0].Number != 3 || len(gone) != 2 {
		t.Errorf("kept %+v, gone %+v", kept, gone)
	}
	if kept, _ := bounded([]Version{{Number: 1, Bytes: 2 * mostVersionBytes}}); len(kept) != 1 {
		t.Error("the newest version did not stay")
	}
}

func TestHistory_DamageIsReported(t *testing.T) {
	h := history(t)
	keep(t, h, "a: 1\n")
	if err := os.WriteFile(h.content(1), []byte("a: 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Get(1); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("a content that was changed: %v", err)
	}
	if err := os.WriteFile(h.index(), []byte(`{"versions":[],"crc32c":"00000000"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := h.List(); err == nil || !strings.Contains(err.Error(), "remove the directory") {
		t.Errorf("a list that was changed: %v", err)
	}
}
