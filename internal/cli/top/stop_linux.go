package top

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sigaction is the kernel's struct sigaction (rt_sigaction(2)) of 64-bit systems.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// stop stops the process as SIGTSTP does by default, until it is continued. A process that no shell could continue is
// not stopped: the kernel sees to that (POSIX, orphaned process groups), which it would not for SIGSTOP. Go's runtime
// keeps its own handler for the signal once it had one, and that does nothing; so the kernel's default is put there for
// the moment.
func stop() error {
	var now, was sigaction
	if err := action(&now, &was); err != nil {
		return err
	}
	// To this thread: it takes the signal before it goes on, while another could find Go's handler back in place.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGTSTP)
	if back := action(&was, nil); err == nil {
		err = back
	}
	return err
}

func action(set, was *sigaction) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGTSTP), uintptr(unsafe.Pointer(set)),
		uintptr(unsafe.Pointer(was)),
		unsafe.Sizeof(set.mask), 0, 0)
	if errno != 0 {
		return fmt.Errorf("stop: %w", errno)
	}
	return nil
}
