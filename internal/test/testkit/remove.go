package testkit

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// removePatience is how long the kernel may go on using what is removed: a process that ends still has its namespace, a
// device its address, a mount a file that is being closed.
const removePatience = time.Minute

// Remove removes what a test made outside its own process: a namespace, a device, a cgroup, a mount. While the kernel
// says that it is busy, it is asked again; what is gone already is no error.
func Remove(t testing.TB, what string, remove func() error) {
	t.Helper()
	for deadline := time.Now().Add(removePatience); ; time.Sleep(20 * time.Millisecond) {
		err := remove()
		if err == nil || isGone(err) {
			return
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			t.Errorf("remove %s: %v", what, err)
			return
		}
	}
}

func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO)
}

// Unmount unmounts what a test mounted at a path, at once, for whoever still has files there as well.
func Unmount(t testing.TB, at string) {
	t.Helper()
	Remove(t, "the mount at "+at, func() error {
		err := unix.Unmount(at, unix.MNT_DETACH)
		if errors.Is(err, unix.EINVAL) { // nothing is mounted there any more
			return nil
		}
		return err
	})
}
