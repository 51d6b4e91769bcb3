package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAReportReplacesTheOldOneWhole(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "report.html"), filepath.Join(dir, "link.html")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	f, err := Check(link)
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(file); string(text) != "old" {
		t.Errorf("looking at the path changed the file: %q", text)
	}
	if err := f.Write(curvesReport(), ""); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(file); !strings.Contains(string(text), "<h1>Message size</h1>") {
		t.Errorf("the file holds %.60q", text)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
	if all, _ := os.ReadDir(dir); len(all) != 2 {
		t.Errorf("left beside the report: %v", all)
	}
}

func TestPathsThatCannotHoldAReport(t *testing.T) {
	dir := t.TempDir()
	for path, says := range map[string]string{
		"":                                  "name of the file is empty",
		dir:                                 "is a directory",
		filepath.Join(dir, "no", "x.html"):  "no such file or directory",
		"/dev/null":                         "no ordinary file",
		"/proc/report.html":                 "cannot be written",
		filepath.Join(dir, "x\x00y.html"):   "report: ",
		filepath.Join(dir, "report.html/x"): "no such file or directory",
	} {
		if _, err := Check(path); err == nil || !strings.Contains(err.Error(), says) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("Check(%q) = %v, want %q in one line", path, err, says)
		}
	}
	if all, _ := os.ReadDir(dir); len(all) != 0 {
		t.Errorf("looking left something: %v", all)
	}
}

func TestADirectoryThatGoesMeanwhileIsAnError(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sub")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := Check(filepath.Join(dir, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(curvesReport(), ""); err == nil || !strings.Contains(err.Error(), "cannot be written") {
		t.Errorf("Write = %v", err)
	}
}
