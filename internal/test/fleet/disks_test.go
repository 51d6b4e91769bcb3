package fleet

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
)

// disk is a small file system.
type disk struct {
	t  *testing.T
	at string
}

// newDisk makes one at a directory.
func newDisk(t *testing.T, at, size string) *disk {
	t.Helper()
	err := os.MkdirAll(at, 0o700)
	if err == nil {
		err = unix.Mount("heddle-test", at, "tmpfs", 0, "mode=0700,size="+size)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { testkit.Unmount(t, at) })
	return &disk{t, at}
}

// fill takes all space that is left, but so many bytes.
func (d *disk) fill(leave int64) {
	d.t.Helper()
	f, err := os.Create(filepath.Join(d.at, "filler"))
	if err != nil {
		d.t.Fatal(err)
	}
	for size := 1 << 20; size > 0; size >>= 1 {
		for chunk := make([]byte, size); err == nil; {
			_, err = f.Write(chunk)
		}
		if !errors.Is(err, unix.ENOSPC) {
			d.t.Fatal(err)
		}
		err = nil
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err := errors.Join(err, f.Truncate(size-leave), f.Close()); err != nil {
		d.t.Fatal(err)
	}
}

// empty gives that space back.
func (d *disk) empty() {
	d.t.Helper()
	if err := os.Remove(filepath.Join(d.at, "filler")); err != nil {
		d.t.Fatal(err)
	}
}

// readOnly makes it one that can't be written, or ends that. Nobody may have a file of it open for writing.
func (d *disk) readOnly(is bool) {
	d.t.Helper()
	flags := uintptr(unix.MS_REMOUNT)
	if is {
		flags |= unix.MS_RDONLY
	}
	if err := unix.Mount("heddle-test", d.at, "tmpfs", flags, ""); err != nil {
		d.t.Fatal(err)
	}
}

// says waits until the controller's log has a part.
func (f *fleet) says(part string) {
	f.t.Helper()
	f.controller.Await("the log has "+part, func() bool { return strings.Contains(f.controller.Log(), part) })
}

// A controller whose disk is full takes no change, says why, and serves its hosts; it takes changes again as soon as
// there is space. One that begins with a disk that is full or can't be written waits for it.
func TestS103_AControllerWithAFullDisk(t *testing.T) {
	testkit.Long(t, "fills disks and waits for what is tried again")
	t.Parallel()
	f := newFleetSized(t, 1, ownConfig, "own1", "own2")
	carried := f.stream("p-own1@0", "p-own2@0", fleetMAC(0, 1), fleetMAC(0, 2))
	d := newDisk(t, f.controller.DataDir(), "320m")
	f.controller.Start()
	f.controller.Join(f.hosts[0].Host, "esx0", map[string]string{"rack": "a"})
	f.controller.Define(fleetText)
	f.connect(0, 3, "p-web", "web")

	d.fill(8 << 20)
	refusedText := strings.Replace(fleetText, "access: 20", "access: 21", 1)
	_, refused := f.tries(api.Define{Content: refusedText})
	f.has("the refusal", refused, "MiB left, and 80 MiB are kept free for etcd", "make space there")
	d.empty()
	d.fill(0)
	for range 20 { // etcd would have ended by one of them
		if _, refused := f.tries(api.Define{Content: refusedText}); refused == "" {
			t.Fatal("a change is taken on a full disk")
		}
	}
	f.inState("esx0", api.HostUp)
	f.connect(0, 4, "p-db", "db")
	if got := f.vlan(0, "p-db"); got != "access 20" {
		t.Errorf("a refused change is active: VLAN %s", got)
	}
	out, _, status := f.controller.Heddle("status", "--controller", f.controller.Socket())
	f.has("the status", out, "wrong  disk      0 KiB of 320.0 MiB are free", "make space on the file system")
	if status != 1 {
		t.Errorf("the status is no fault: %d", status)
	}

	f.controller.End(syscall.SIGTERM)
	f.controller.Launch()
	f.says("waiting until the data directory can be written")
	d.empty()
	f.controller.Answers()
	f.inState("esx0", api.HostUp)
	changed := strings.Replace(fleetText, "access: 20", "access: 22", 1)
	if out := f.controller.Define(changed); len(out.Waiting) > 0 {
		t.Errorf("a change when there is space: %+v", out)
	}

	f.controller.End(syscall.SIGTERM)
	d.readOnly(true)
	f.controller.Launch()
	f.says("read-only file system")
	d.readOnly(false)
	f.controller.Answers()
	f.inState("esx0", api.HostUp)
	f.has("the definition after all that", f.definition(), "access: 22")
	if got := f.vlan(0, "p-db"); got != "access 22" {
		t.Errorf("the port has VLAN %s", got)
	}
	f.whole("on the host's own switch", carried)
}

// A host whose agent can't write its state goes on by what it has and stays connected. The controller says why a change
// is not active, and it is active as soon as there is space: also after an agent that was killed meanwhile.
func TestS103_AHostWithAFullDisk(t *testing.T) {
	testkit.Long(t, "fills disks and waits for what is tried again")
	t.Parallel()
	f := newFleetSized(t, 1, ownConfig, "own1", "own2")
	h := f.hosts[0]
	carried := f.stream("p-own1@0", "p-own2@0", fleetMAC(0, 1), fleetMAC(0, 2))
	f.controller.Start()
	f.controller.Join(h.Host, "esx0", map[string]string{"rack": "a"})
	f.controller.Define(fleetText)
	f.connect(0, 3, "p-web", "web")
	h.End(syscall.SIGTERM)
	d := moveTo(t, filepath.Join(h.Dir, "state"), "4m")
	h.Start("")
	f.inState("esx0", api.HostUp)

	d.fill(0)
	text := strings.Replace(fleetText, "access: 10", "access: 11", 1)
	f.refusedAt("esx0", text, "no space left on device")
	if got := f.vlan(0, "p-web"); got != "access 10" {
		t.Errorf("the port has VLAN %s", got)
	}
	if m, err := h.Membership(t.Context()); err != nil || m.Connected == "" {
		t.Errorf("the host is not connected: %+v, %v", m, err)
	}
	h.must("port", "list")
	d.empty()
	f.inState("esx0", api.HostUp)
	if got := f.vlan(0, "p-web"); got != "access 11" {
		t.Errorf("the port has VLAN %s when there is space", got)
	}

	d.fill(0)
	h.End(syscall.SIGKILL)
	h.Start("")
	f.inState("esx0", api.HostUp)
	if got := f.vlan(0, "p-web"); got != "access 11" {
		t.Errorf("the port has VLAN %s after the agent was killed", got)
	}
	d.empty()

	d.readOnly(true)
	f.refusedAt("esx0", strings.Replace(fleetText, "access: 10", "access: 12", 1), "read-only file system")
	d.readOnly(false)
	f.inState("esx0", api.HostUp)
	if got := f.vlan(0, "p-web"); got != "access 12" {
		t.Errorf("the port has VLAN %s when the state can be written", got)
	}
	f.whole("on the host's own switch", carried)
}

// moveTo moves a directory to a small file system that is seen in its place.
func moveTo(t *testing.T, dir, size string) *disk {
	t.Helper()
	was := dir + ".was"
	if err := os.Rename(dir, was); err != nil {
		t.Fatal(err)
	}
	d := newDisk(t, dir, size)
	if err := os.CopyFS(dir, os.DirFS(was)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return os.Chmod(path, 0o700)
		}
		return os.Chmod(path, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// refusedAt defines what a host can't make active for that reason.
func (f *fleet) refusedAt(host, text, why string) {
	f.t.Helper()
	out, refused := f.tries(api.Define{Content: text})
	if refused != "" || len(out.Waiting) != 1 || out.Waiting[0].Host != host ||
		!strings.Contains(strings.Join(out.Waiting[0].Problems, "\n"), why) {
		f.t.Errorf("a change that the host can't keep: %+v %s", out, refused)
	}
	f.inState(host, api.HostOutOfSync)
	f.has("the host's problem", strings.Join(f.host(host).Problems, "\n"), why)
}
