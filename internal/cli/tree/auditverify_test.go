package tree

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heddle/internal/cli"
	"heddle/internal/platform/audit"
)

// A copy of a log is checked without a controller: as it was written it has no fault, one that was changed names the
// line, and one that was cut lacks the head that was noted.
func TestAuditVerify_ACopyWithoutAController(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	l, err := audit.Open(dir, audit.Bounds{File: 1000, Changes: 50, Refusals: 2}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		c, err := l.Begin(audit.Entry{Who: "ann", Call: "ApplyDefinition"})
		if err == nil {
			err = c.End(audit.Done, []string{"portGroup dvs/web changed"}, "")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	chains, err := l.Verify("")
	if err != nil || l.Close() != nil {
		t.Fatal(err)
	}
	head := chains[0].Head
	verify := func(args ...string) (out, errs string, status int) {
		var o, e bytes.Buffer
		status = Run(t.Context(), cli.Deps{Stdin: strings.NewReader(""), Stdout: &o, Stderr: &e,
			Getenv: func(string) string { return "" }}, append([]string{"audit", "verify"}, args...))
		return o.String(), e.String(), status
	}
	files, err := filepath.Glob(filepath.Join(dir, "changes-*.jsonl"))
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	out, errs, status := verify("--file", dir, "--head", head, "-o", "json")
	if status != 0 || errs != "" || !strings.Contains(out, `"lines": 20`) || !strings.Contains(out, head) {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	// The newest files alone are a part of it, whose beginning says what is before.
	if out, errs, status := verify("--file", files[2], "--file", files[3]); status != 0 {
		t.Errorf("two files of it: status %d: %s%s", status, out, errs)
	}
	if _, errs, status := verify("--file", files[0], "--file", files[2]); status != 1 ||
		!strings.Contains(errs, filepath.Base(files[2])+", line 1: it does not follow the line before") {
		t.Errorf("a file is missing between: status %d: %s", status, errs)
	}
	text, err := os.ReadFile(files[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[1], bytes.Replace(text, []byte("ann"), []byte("eve"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, status := verify("--file", dir); status != 1 || !strings.Contains(errs,
		filepath.Base(files[1])+", line 1") {
		t.Errorf("a line that was changed: status %d: %s", status, errs)
	}
	if err := os.Remove(files[len(files)-1]); err != nil {
		t.Fatal(err)
	}
	if _, errs, status := verify("--file", dir, "--head", head); status != 1 || !strings.Contains(errs, "no log has a "+
		"line with the hash of --head") {
		t.Errorf("a log that was cut: status %d: %s", status, errs)
	}
	for name, want := range map[string]string{filepath.Join(dir, "none"): "no such file",
		t.TempDir(): "no file *.jsonl"} {
		if _, errs, status := verify("--file", name); status != 2 || !strings.Contains(errs, want) {
			t.Errorf("%s: status %d: %s", name, status, errs)
		}
	}
	other := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(other, []byte("switches:\n- name: a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, status := verify("--file", other); status != 1 || !strings.Contains(errs, "no lines of an audit log") {
		t.Errorf("another file: status %d: %s", status, errs)
	}
}
