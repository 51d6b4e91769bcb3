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
// not stopped: the kernel ensures that for SIGTSTP (POSIX, orphaned process groups), but not for SIGSTOP. Once Go's
// runtime has had a handler for the signal it keeps it, and that handler does nothing; so the kernel's default action
// is set for the moment.
func stop() error {
	var now, was sigaction
	if err := action(&now, &was); err != nil {
		return err
	}
	// Send it to this thread, which takes the signal before it continues; another thread could find Go's handler
	// restored.
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
