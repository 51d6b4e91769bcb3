package instance

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"heddle/internal/host/ownfile"
)

const bpfFSMagic = 0xcafe4a11

// mountsLock keeps agents from mounting and unmounting the shared bpf file system at the same time.
func mountsLock(p Paths) (*os.File, error) {
	f, err := ownfile.Open(filepath.Join(p.Run, ".mounts"), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Mount mounts the bpf file system for the pins, unless it is mounted. It is mounted outside /sys, so that it is
// visible inside "ip netns exec" too. The agent's own directory is made under the same lock, so that another agent that
// ends does not unmount the file system in between. It is the holder's until Release.
func (l *Lock) Mount(p Paths, name string) error {
	dir := p.bpffs()
	lock, err := mountsLock(p)
	if err != nil {
		return fmt.Errorf("lock the run directory: %w", err)
	}
	defer lock.Close()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the directory of pinned objects: %w", err)
	}
	if !onBPFFS(dir) {
		if err := mountAt(dir); err != nil {
			return err
		}
	}
	if err := l.takePins(p.Pins(name)); err != nil {
		return fmt.Errorf("the directory of pinned objects: %w", err)
	}
	return nil
}

func mountAt(dir string) error {
	if private, err := privateMounts(); err != nil || private {
		return errors.Join(err, fmt.Errorf("no bpf file system at %s, and this process has mounts of its own (as "+
			"inside \"ip netns exec\"): one mounted here would be gone with it; "+
			"mount it outside first: mkdir -p %s && mount -t bpf -o mode=0700 bpf %s", dir, dir, dir))
	}
	if err := unix.Mount("bpf", dir, "bpf", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0700"); err != nil {
		return fmt.Errorf("mount a bpf file system at %s (needs CAP_SYS_ADMIN, and CONFIG_BPF_SYSCALL in the kernel; "+
			"or do it beforehand: mount -t bpf -o mode=0700 bpf %s): %w", dir, dir, err)
	}
	return nil
}

func onBPFFS(dir string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(dir, &fs) == nil && fs.Type == bpfFSMagic
}

// privateMounts reports whether the process is in another mount namespace than one of its ancestors, so that its mounts
// may end with it. Ancestors that cannot be read are skipped.
func privateMounts() (bool, error) {
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return false, err
	}
	for pid := os.Getppid(); pid > 0; pid = parentOf(pid) {
		if theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid)); err == nil && theirs != own {
			return true, nil
		}
	}
	return false, nil
}

// parentOf returns the parent of a process, 0 if it has none or is gone (proc_pid_stat(5): the second field after the
// name, which ends with the last closing parenthesis).
func parentOf(pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return parent
}

// Unmount unmounts the bpf file system if no agent has pins in it.
func Unmount(p Paths) error {
	dir := p.bpffs()
	lock, err := mountsLock(p)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("lock the run directory: %w", err)
	}
	defer lock.Close()
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() { // another agent's
			return nil
		}
	}
	if !onBPFFS(dir) {
		return nil
	}
	// Nothing is pinned there any more; a process that still has the directory open keeps the empty view until it
	// closes it.
	err = unix.Unmount(dir, unix.MNT_DETACH)
	if errors.Is(err, unix.EPERM) { // another agent mounted it and this one may not unmount it; empty, it does no harm
		return nil
	}
	if err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("unmount %s: %w", dir, err)
	}
	_ = os.Remove(dir) // not empty if somebody else still needs it
	return nil
}
