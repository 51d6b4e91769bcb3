package contexts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFile_IsItsOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "heddle", "contexts.yaml")
	f, err := Load(path)
	if err != nil || len(f.Contexts) != 0 {
		t.Fatalf("without a file: %+v, %v", f, err)
	}
	f.Put(Context{Name: "lab", Controller: "https://c1:7443", Token: "ht1.secret"})
	f.Put(Context{Name: "prod", Controller: "https://c2:7443", TokenFile: "/nowhere"})
	f.Put(Context{Name: "lab", Controller: "https://c3:7443", Token: "ht1.other"})
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("its mode: %v, %v", fi.Mode(), err)
	}
	f, err = Load(path)
	if err != nil || f.Current != "lab" || len(f.Contexts) != 2 {
		t.Fatalf("read again: %+v, %v", f, err)
	}
	if c, ok := f.At("https://c2:7443"); !ok || c.Name != "prod" {
		t.Errorf("by its address: %+v", c)
	}
	if !f.Remove("lab") || f.Remove("lab") || f.Current != "" {
		t.Errorf("removed: %+v", f)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "chmod 600 "+path) {
		t.Errorf("a file that others may read: %v", err)
	}
	if err := os.WriteFile(path, []byte("contexts: {token: ht1.hidden\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("a damaged file: %v", err)
	}
}

func TestURL(t *testing.T) {
	for text, want := range map[string]string{"https://c1": "https://c1:7443", "https://c1:1/": "https://c1:1",
		"https://[2001:db8::1]": "https://[2001:db8::1]:7443", "http://c1": "", "c1:7443": "", "https://u:p@c1": "",
		"https://c1/x": "", "https://:7443": "", "": ""} {
		t.Run(text, func(t *testing.T) {
			got, err := URL(text)
			if got != want || (err == nil) != (want != "") || err != nil && strings.Contains(err.Error(), ":p@") {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}
