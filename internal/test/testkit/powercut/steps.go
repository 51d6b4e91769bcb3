package powercut

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// follower stops all threads of a process at each step that it makes with files of a directory.
type follower struct {
	pid int
	dir string
	// before is called ahead of each step, while the thread that makes it stands still.
	before func(step string) error
}

// Follow runs a process that stands still until begin is called, to its end; before is called ahead of each step that
// it makes with files of the directory. A step makes, writes, renames, removes or syncs something.
func Follow(pid int, dir string, begin func() error, before func(step string) error) error {
	runtime.LockOSThread() // which is the tracer of all threads
	defer runtime.UnlockOSThread()
	f := &follower{pid: pid, dir: dir, before: before}
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	for _, e := range threads {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			return err
		}
		if err := f.seize(tid); err != nil && !errors.Is(err, unix.ESRCH) { // it has ended in between
			return err
		}
	}
	if err := begin(); err != nil {
		return err
	}
	return f.run()
}

// seize begins to trace a thread, and those that it starts.
func (f *follower) seize(tid int) error {
	const options = unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_EXITKILL
	if _, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(tid), 0, options, 0, 0); e != 0 {
		return fmt.Errorf("trace a thread: %w", e)
	}
	if err := unix.PtraceInterrupt(tid); err != nil {
		return fmt.Errorf("stop a thread: %w", err)
	}
	return nil
}

// run lets the threads go on from system call to system call until the process has ended.
func (f *follower) run() error {
	for {
		var status unix.WaitStatus
		tid, err := unix.Wait4(-1, &status, unix.WALL|unix.WNOTHREAD, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECHILD):
			return nil
		case err != nil:
			return err
		case !status.Stopped():
			if tid == f.pid {
				return nil
			}
			continue
		}
		pass, err := f.stopped(tid, status)
		if err != nil {
			return err
		}
		if err := unix.PtraceSyscall(tid, pass); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
}

// stopped handles one stop of a thread, and returns the signal that it gets.
func (f *follower) stopped(tid int, status unix.WaitStatus) (pass int, err error) {
	switch sig := status.StopSignal(); {
	case sig == unix.SIGTRAP|0x80:
		return 0, f.call(tid)
	case sig == unix.SIGTRAP || uint32(status)>>16 != 0: // a thread that has begun, or that was told to stop
		return 0, nil
	default:
		return int(sig), nil
	}
}

// callInfo is struct ptrace_syscall_info at the entry of a call.
type callInfo struct {
	op   uint8
	_    [3]uint8
	_    uint32
	_, _ uint64
	nr   uint64
	args [6]uint64
	_    uint64
}

// call reports a step at the entry of its system call.
func (f *follower) call(tid int) error {
	const getInfo, entry = 0x420e, 1
	var info callInfo
	if _, _, e := unix.Syscall6(unix.SYS_PTRACE, getInfo, uintptr(tid), unsafe.Sizeof(info),
		uintptr(unsafe.Pointer(&info)), 0, 0); e == unix.ESRCH {
		return nil
	} else if e != 0 {
		return fmt.Errorf("ask for a system call: %w", e)
	}
	if info.op != entry {
		return nil
	}
	name, path := f.step(&info)
	if name == "" || !strings.HasPrefix(path, f.dir) {
		return nil
	}
	return f.before(name + " " + strings.TrimPrefix(path, f.dir))
}

// step is what a system call does to which file; "" where it changes none.
func (f *follower) step(c *callInfo) (name, path string) {
	switch c.nr {
	case unix.SYS_OPENAT:
		if c.args[2]&(unix.O_CREAT|unix.O_TRUNC) != 0 {
			return "open", f.text(c.args[1])
		}
	case unix.SYS_WRITE, unix.SYS_PWRITE64:
		return "write", f.file(c.args[0])
	case unix.SYS_FALLOCATE, unix.SYS_FTRUNCATE:
		return "size", f.file(c.args[0])
	case unix.SYS_FSYNC, unix.SYS_FDATASYNC:
		return "sync", f.file(c.args[0])
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
		return "rename", f.text(c.args[1])
	case unix.SYS_UNLINKAT:
		return "remove", f.text(c.args[1])
	case unix.SYS_MKDIRAT:
		return "mkdir", f.text(c.args[1])
	}
	return "", ""
}

// text is a string in the memory of the process.
func (f *follower) text(at uint64) string {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", f.pid))
	if err != nil {
		return ""
	}
	defer memory.Close()
	b := make([]byte, 512)
	n, _ := memory.ReadAt(b, int64(at)) // less than that where a page ends
	if end := slices.Index(b[:n], 0); end >= 0 {
		n = end
	}
	return string(bytes.Clone(b[:n]))
}

// file is the path of an open file.
func (f *follower) file(fd uint64) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", f.pid, fd))
	if err != nil {
		return ""
	}
	return path
}
