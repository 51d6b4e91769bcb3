package tree

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"heddle/internal/cli"
)

// An export that is interrupted while the controller makes the backup leaves the file that was there before, and no
// other.
func TestS82_AnInterruptedExportLeavesNoHalfFile(t *testing.T) {
	socket, dir := filepath.Join(t.TempDir(), "s"), t.TempDir()
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // a controller that was asked and does not answer
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = c.Read(make([]byte, 1))
		cancel()
		<-t.Context().Done()
	}()
	file := filepath.Join(dir, "heddle-backup.yaml")
	if err := os.WriteFile(file, []byte("from before"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	status := Run(ctx, cli.Deps{Stdin: bytes.NewReader(nil), Stdout: &out, Stderr: &errs, Getenv: func(string) string {
		return ""
	}}, []string{"backup", "export", file, "--controller", socket})
	if status != cli.ExitFailure || ctx.Err() == nil {
		t.Errorf("status %d, interrupted: %v\n%s%s", status, ctx.Err(), &out, &errs)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "from before" {
		t.Errorf("the file says %q (%v)", text, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("there are %v (%v)", entries, err)
	}
}
