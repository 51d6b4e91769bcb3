package instance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"heddle/internal/host/netspace"
)

// Place names this boot and the calling thread's network namespace: ifindexes are valid only within both. A namespace's
// cookie is never reused, unlike its inode (SO_NETNS_COOKIE, Linux 5.14).
func Place() (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("tell this boot from others: %w", err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("tell this network namespace from others: %w", err)
	}
	defer unix.Close(fd)
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return "", fmt.Errorf("tell this network namespace from others (needs Linux 5.14 or newer): %w", err)
	}
	return fmt.Sprintf("%s %d", strings.TrimSpace(string(boot)), cookie), nil
}

// FindPlace returns the path of a place's network namespace, "" if it is gone. It looks for a named namespace, then for
// a process in it.
func FindPlace(place string) (string, error) {
	named, _ := filepath.Glob("/run/netns/*")
	processes, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	seen := map[uint64]bool{}
	for _, path := range append(named, processes...) {
		fi, err := os.Stat(path)
		if err != nil {
			continue // the process has ended
		}
		st, ok := fi.Sys().(*syscall.Stat_t)
		if !ok || seen[st.Ino] {
			continue
		}
		seen[st.Ino] = true
		there := ""
		err = netspace.In(path, func() (err error) { there, err = Place(); return err })
		if err == nil && there == place {
			return path, nil
		}
	}
	return "", nil
}
