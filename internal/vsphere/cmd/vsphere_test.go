package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun_SaysItsVersion(t *testing.T) {
	var out, errs bytes.Buffer
	p := process{strings.NewReader(""), &out, &errs, func(string) string { return "" }, "0.2.0"}
	if status := run(t.Context(), p, []string{"--version"}); status != 0 ||
		!strings.HasPrefix(out.String(), "heddle-vsphere version 0.2.0 ") {
		t.Errorf("status %d: %s%s", status, &out, &errs)
	}
}

// A call that says too little is told apart from a vCenter that is not there, and nothing printed has the password.
func TestRun_SaysWhatIsMissing(t *testing.T) {
	const secret = "Top-Secret-1"
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(secret+"\r\nsecond line"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want, stdin, env string
		status           int
		args             []string
	}{
		{want: "the URL has no host", status: exitUsage},
		{want: "by https only", status: exitUsage, args: []string{"--vcenter=http://vc.example"}},
		{want: "say as whom", status: exitUsage, args: []string{"--vcenter=vc.example"}},
		{want: "no terminal", status: exitUsage, args: []string{"--vcenter=vc.example", "--user=a"}},
		{want: "nowhere", status: exitUsage, args: []string{"--vcenter=vc.example", "--user=a",
			"--password-file=nowhere"}},
		{want: "first line", status: exitUsage, args: []string{"--vcenter=vc.example", "--user=a",
			"--password-file=-"}},
		{want: "unknown flag", status: exitUsage, args: []string{"--password=x"}},
		{want: "127.0.0.1:1", env: secret, status: exitFailure, args: []string{"--vcenter=127.0.0.1:1", "--user=a"}},
		{want: "127.0.0.1:1", stdin: secret, status: exitFailure,
			args: []string{"--vcenter=127.0.0.1:1", "--user=a", "--password-file=-"}},
		{want: "127.0.0.1:1", status: exitFailure,
			args: []string{"--vcenter=127.0.0.1:1", "--user=a", "--password-file=" + file}},
	} {
		var out, errs bytes.Buffer
		p := process{strings.NewReader(c.stdin), &out, &errs, func(name string) string {
			if name == "HEDDLE_VCENTER_PASSWORD" {
				return c.env
			}
			return ""
		}, ""}
		status := run(t.Context(), p, c.args)
		if status != c.status || !strings.Contains(errs.String(), c.want) || out.Len() > 0 {
			t.Errorf("%q: status %d: %s%s", c.args, status, &out, &errs)
		}
		if strings.Contains(errs.String(), secret) {
			t.Errorf("%q: it prints the password: %s", c.args, &errs)
		}
	}
	word, err := process{}.password(file, "a")
	if err != nil || word != secret {
		t.Errorf("the password is %q (%v)", word, err)
	}
}
