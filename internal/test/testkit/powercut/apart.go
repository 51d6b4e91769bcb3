package powercut

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A disk that loses its power is mounted in a mount namespace of its own. Every process that makes a namespace, such as
// "ip netns exec" of another test, has a copy of all mounts until it ends: the file system would be there still when it
// is mounted again, without its power.

// apart makes a mount namespace in which a disk is mounted; it lasts until it is closed.
func (d *Disk) apart() (*os.File, error) {
	type made struct {
		space *os.File
		err   error
	}
	answer := make(chan made)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this function, as nobody else may use it
		err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		if err == nil {
			err = d.mount()
		}
		if err != nil {
			answer <- made{nil, err}
			return
		}
		space, err := os.Open("/proc/thread-self/ns/mnt")
		answer <- made{space, err}
	}()
	m := <-answer
	return m.space, m.err
}

// enter has the test go on in the disk's namespace, and what it starts, to its end.
func (d *Disk) enter(t *testing.T) {
	t.Helper()
	at, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	if err := errors.Join(unix.Unshare(unix.CLONE_FS), unix.Setns(int(d.space.Fd()), unix.CLONE_NEWNS),
		unix.Chdir(at)); err != nil {
		t.Fatal(fmt.Errorf("enter the mount namespace of the disk: %w", err))
	}
}
