package powercut

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"heddle/internal/test/testkit"
)

// A disk has its power again although another process has a copy of all mounts of the machine, and although somebody
// has just been about to let go of a file of it.
func TestADiskHasItsPowerAgainBesideOtherMountNamespaces(t *testing.T) {
	testkit.Tool(t, "unshare")
	d := NewDisk(t)
	other := exec.Command("unshare", "--mount", "sh", "-c", "echo made; exec cat")
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := other.StdinPipe()
	if err == nil {
		err = other.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = in.Close(), other.Wait() }) // it has nothing to say
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	d.enter(t)
	for range 3 {
		busy, err := os.Open(d.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.cut(); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(10*time.Millisecond, func() { _ = busy.Close() })
		d.again(t)
		if err := os.WriteFile(filepath.Join(d.Dir, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
