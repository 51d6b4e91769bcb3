package dataplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

const bpffsMagic = 0xcafe4a11

// CheckKernel reports whether the running kernel is too old for the dataplane, and what to do about it.
func CheckKernel() error {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err
	}
	release := unix.ByteSliceToString(u.Release[:])
	var major, minor int
	if n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor); n == 2 && (major < 6 || major == 6 && minor < 6) {
		return fmt.Errorf("kernel %s is too old: programs attach to devices by tcx, which Linux has since 6.6; boot "+
			"a newer kernel", release)
	}
	return nil
}

// Check returns what the dataplane needs but this host or process does not have, and what to do about it.
func Check(pinDir string) error {
	if err := CheckKernel(); err != nil {
		return err
	}
	for dir := pinDir; ; dir = filepath.Dir(dir) {
		var fs unix.Statfs_t
		err := unix.Statfs(dir, &fs)
		if errors.Is(err, os.ErrNotExist) && dir != filepath.Dir(dir) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look at %s: %w", dir, err)
		}
		if fs.Type != bpffsMagic {
			return fmt.Errorf("%s is not on a bpf file system: mount one with `mount -t bpf -o mode=0700 bpf "+
				"DIRECTORY`", pinDir)
		}
		return nil
	}
}

// explainLoad puts the remedy for the operator before the kernel's error.
func explainLoad(err error) error {
	var verifier *ebpf.VerifierError
	switch {
	case errors.As(err, &verifier):
		return fmt.Errorf("this kernel's verifier refuses the switch program; it needs Linux 6.6 or newer with "+
			"CONFIG_BPF_JIT: %+v", verifier)
	case errors.Is(err, ebpf.ErrNotSupported):
		return fmt.Errorf("this kernel lacks something the switch program needs (Linux 6.6 or newer has it): %w", err)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("not allowed to load programs: run as root, or with CAP_BPF, CAP_NET_ADMIN and "+
			"CAP_PERFMON: %w", err)
	case errors.Is(err, ebpf.ErrMapIncompatible):
		return fmt.Errorf("the tables pinned by another version have another layout; `heddle down` removes them "+
			"(traffic stops until the agent is back): %w", err)
	}
	return err
}
