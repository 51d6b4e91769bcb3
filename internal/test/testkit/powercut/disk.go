package powercut

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"heddle/internal/test/testkit"
)

// Disk is a file system that can lose its power.
type Disk struct {
	// Dir is where it is mounted.
	Dir string

	loop    string
	options string   // of its mount
	space   *os.File // the mount namespace that it is mounted in; nil for that of the test's process
}

// diskSize is room for what agents write, and for the file system's journal.
const diskSize = 48 << 20

// NewDisk makes an empty disk that Walk takes the power from. The file system writes by itself only after a minute:
// what a program has not had written is not there.
func NewDisk(t *testing.T) *Disk {
	t.Helper()
	d := newDisk(t, filepath.Join(t.TempDir(), "disk"), diskSize, "commit=60")
	var err error
	if d.space, err = d.apart(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		testkit.Unmount(t, d.Dir) // where the test itself has entered the namespace
		if err := d.space.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// NewFailing makes an empty disk at a directory, of which the medium can fail.
func NewFailing(t *testing.T, at string, size int64) *Disk {
	t.Helper()
	d := newDisk(t, at, size, "errors=remount-ro")
	if err := d.mount(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { testkit.Unmount(t, d.Dir) })
	return d
}

func newDisk(t *testing.T, at string, size int64, options string) *Disk {
	t.Helper()
	testkit.Root(t)
	testkit.Tool(t, "mke2fs")
	d := &Disk{Dir: at, options: options}
	image := filepath.Join(t.TempDir(), "image")
	if err := errors.Join(os.MkdirAll(d.Dir, 0o700), os.WriteFile(image, nil, 0o600),
		os.Truncate(image, size)); err != nil {
		t.Fatal(err)
	}
	// Nothing is written by itself while a test runs.
	out, err := exec.Command("mke2fs", "-q", "-t", "ext4", "-E", "lazy_itable_init=0", image).CombinedOutput()
	if err != nil {
		t.Fatalf("make a file system: %v\n%s", err, out)
	}
	release, err := d.attach(image)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { testkit.Remove(t, d.loop, release) })
	return d
}

// attach gives the image a block device.
func (d *Disk) attach(image string) (release func() error, err error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	file, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for { // another test may take the same number first
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, err
		}
		d.loop = fmt.Sprintf("/dev/loop%d", n)
		device, err := os.OpenFile(d.loop, os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		err = unix.IoctlLoopConfigure(int(device.Fd()), &unix.LoopConfig{Fd: uint32(file.Fd())})
		if errors.Is(err, unix.EBUSY) {
			device.Close()
			continue
		}
		if err != nil {
			return nil, errors.Join(err, device.Close())
		}
		return func() error {
			return errors.Join(unix.IoctlSetInt(int(device.Fd()), unix.LOOP_CLR_FD, 0), device.Close())
		}, nil
	}
}

func (d *Disk) mount() error {
	if err := unix.Mount(d.loop, d.Dir, "ext4", 0, d.options); err != nil {
		return fmt.Errorf("mount %s at %s: %w", d.loop, d.Dir, err)
	}
	return os.Chmod(d.Dir, 0o700)
}

// Fail has the file system go the way that it goes when it finds a fault of its medium: what is there can be read, and
// nothing can be written, whatever is open.
func (d *Disk) Fail(t *testing.T) {
	t.Helper()
	file := "/sys/fs/ext4/" + filepath.Base(d.loop) + "/trigger_fs_error"
	if err := os.WriteFile(file, []byte("a test has the medium fail"), 0); err != nil {
		t.Fatal(err)
	}
}

// cut takes the power: nothing reaches the disk any more, and all that was not written is lost.
func (d *Disk) cut() error {
	dir, err := os.Open(d.Dir)
	if err != nil {
		return err
	}
	const shutdown, noFlush = 0x8004587d, 2 // FS_IOC_SHUTDOWN, FS_SHUTDOWN_FLAGS_NOLOGFLUSH
	return errors.Join(unix.IoctlSetPointerInt(int(dir.Fd()), shutdown, noFlush), dir.Close())
}

// again gives the power back, as at a boot. A process that another test has just forked has the files of this one for a
// moment, so that the file system may be busy.
func (d *Disk) again(t *testing.T) {
	t.Helper()
	gone := false
	testkit.Remove(t, "the mount at "+d.Dir, func() error {
		err := unix.Unmount(d.Dir, 0)
		gone = err == nil
		return err
	})
	if !gone {
		t.FailNow()
	}
	if err := d.mount(); err != nil {
		t.Fatal(err)
	}
}
