package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/lab/netns"
)

const (
	netnsDir = "/var/run/netns"
	// graceful is how long processes have to end by themselves before they are killed.
	graceful = 3 * time.Second
	// pollEvery is the interval at which a condition without notification is checked.
	pollEvery = 20 * time.Millisecond
)

// ErrLeft is wrapped when a lab could not be removed completely.
var ErrLeft = errors.New("something is left of the lab")

// Down removes everything that the named lab consists of: processes in its namespaces, pinned kernel objects,
// namespaces with their devices, its directory and its record, whatever exists of it. ErrUnknown if there is no such
// lab. After a failure it continues and keeps the record, so that it can be called again. Before, it checks whether the
// counters of the lab's hosts add up; if they do not, the lab is removed all the same, and the error is ErrAccounts.
func Down(ctx context.Context, runDir, name string) error {
	r, err := Find(runDir, name)
	if err != nil {
		return err
	}
	unsound := r.CheckAccounts(ctx)
	errs := []error{
		endProcesses(ctx, r),
		unmountBelow(r.Dir),
	}
	for _, n := range r.Nodes {
		if n.Namespace != "" {
			// Also one whose creation was interrupted between its file and its mount.
			errs = append(errs, (&netns.NS{Name: n.Namespace}).Delete())
		}
	}
	errs = append(errs, os.RemoveAll(r.Dir))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w: take down lab %q: %w; try again with: heddle lab down %s", ErrLeft, name,
			errors.Join(err, unsound), name)
	}
	if err := os.Remove(recordFile(runDir, name)); err != nil {
		return err
	}
	// The parent directories are removed with the last lab, unless something else is in them.
	for _, dir := range []string{recordDir(runDir), runDir} {
		if err := os.Remove(dir); err != nil {
			break
		}
	}
	return unsound
}

// endProcesses ends every process in the lab's namespaces: first with SIGTERM, then with SIGKILL.
func endProcesses(ctx context.Context, r *Record) error {
	inodes := namespaceInodes(r)
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		deadline := time.Now().Add(graceful)
		for first := true; ; first = false {
			pids := processesIn(inodes)
			if len(pids) == 0 {
				return nil
			}
			if first {
				signalAll(pids, sig)
			}
			if time.Now().After(deadline) {
				break
			}
			if !pause(ctx) {
				return ctx.Err()
			}
		}
	}
	return fmt.Errorf("processes %v do not end", processesIn(inodes))
}

// inode identifies a namespace, or any other file.
type inode struct{ device, number uint64 }

// namespaceInodes identifies the lab's existing namespaces. A half-made one is an ordinary file, which is no process'
// namespace, so it does no harm here.
func namespaceInodes(r *Record) map[inode]bool {
	inodes := map[inode]bool{}
	for _, n := range r.Nodes {
		var st unix.Stat_t
		if n.Namespace != "" && unix.Stat(filepath.Join(netnsDir, n.Namespace), &st) == nil {
			inodes[inode{st.Dev, st.Ino}] = true
		}
	}
	return inodes
}

// pause waits for the next check of a condition; false when ctx has ended.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pollEvery):
		return true
	}
}

func signalAll(pids []int, sig unix.Signal) {
	for _, pid := range pids {
		_ = unix.Kill(pid, sig) // it may be gone by now, which the next check shows
	}
}

// processesIn lists the processes whose network namespace is one of these, except this process.
func processesIn(inodes map[inode]bool) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil || len(inodes) == 0 {
		return nil
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		var st unix.Stat_t
		if unix.Stat(filepath.Join("/proc", e.Name(), "ns/net"), &st) == nil && inodes[inode{st.Dev, st.Ino}] {
			pids = append(pids, pid)
		}
	}
	return pids
}

// unmountBelow unmounts what is mounted at or below dir, innermost first. With the mount its pins disappear, and with
// the pins the kernel's programs and tables.
func unmountBelow(dir string) error {
	mounts, err := mountsBelow(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range slices.Backward(mounts) {
		if err := unix.Unmount(m, 0); err != nil {
			errs = append(errs, fmt.Errorf("unmount %s: %w", m, err))
		}
	}
	return errors.Join(errs...)
}

// mountsBelow lists mount points at or below dir in the order they were mounted.
func mountsBelow(dir string) ([]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("list the mounts: %w", err)
	}
	defer f.Close()
	var mounts []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			continue
		}
		at := unescapeMount(fields[4])
		if at == dir || strings.HasPrefix(at, dir+"/") {
			mounts = append(mounts, at)
		}
	}
	return mounts, lines.Err()
}

// unescapeMount undoes the octal escapes of mountinfo (proc(5)).
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
