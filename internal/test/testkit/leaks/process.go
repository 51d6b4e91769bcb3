package leaks

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// descriptors are the open file descriptors, but for those by which Go's runtime waits for the others, which stay once
// they are made.
func descriptors() map[string]string {
	const dir = "/proc/self/fd"
	entries, _ := os.ReadDir(dir)
	all := map[string]string{}
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil || target == "anon_inode:[eventpoll]" || target == "anon_inode:[eventfd]" ||
			strings.HasSuffix(target, "/fd") {
			continue // closed since; of the runtime; of this very look
		}
		key := "file descriptor " + e.Name() + " → " + target
		if fd, err := strconv.Atoi(e.Name()); err == nil && strings.HasPrefix(target, "socket:") {
			key += socket(fd)
		}
		for _, o := range objectsIn(filepath.Join("/proc/self/fdinfo", e.Name())) {
			key += fmt.Sprintf(" (%s)", o)
		}
		all[key] = key
	}
	return all
}

// socket returns the kind of a socket, and its peer.
func socket(fd int) string {
	family, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return ""
	}
	names := map[int]string{unix.AF_UNIX: "unix", unix.AF_INET: "inet", unix.AF_INET6: "inet6",
		unix.AF_NETLINK: "netlink", unix.AF_PACKET: "packet"}
	text := fmt.Sprintf(" (family %d %s", family, names[family])
	for what, ask := range map[string]func(int) (unix.Sockaddr, error){"at": unix.Getsockname, "to": unix.Getpeername} {
		if a, err := ask(fd); err == nil {
			if u, ok := a.(*unix.SockaddrUnix); ok && u.Name != "" {
				text += ", " + what + " " + u.Name
			}
		}
	}
	return text + ")"
}

// routines are the goroutines, but for those that the tests themselves run in and those of the runtime.
func routines() map[string]string {
	stacks := make([]byte, 1<<16)
	for {
		n := runtime.Stack(stacks, true)
		if n < len(stacks) {
			stacks = stacks[:n]
			break
		}
		stacks = make([]byte, 2*len(stacks))
	}
	all := map[string]string{}
	for _, stack := range strings.Split(string(stacks), "\n\n")[1:] { // the first is this one
		head, _, _ := strings.Cut(stack, "[")
		if of := []string{"testing.tRunner(", "testing.(*M).", "created by testing.",
			"os/signal.loop("}; slices.ContainsFunc(of, func(f string) bool {
			return strings.Contains(stack, f)
		}) {
			continue
		}
		lines := strings.Split(strings.TrimSpace(stack), "\n")
		text := strings.TrimSuffix(lines[0], ":")
		if len(lines) > 1 {
			text += " in " + strings.TrimSpace(lines[1])
		}
		if i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "created by ") }); i > 0 {
			text += ", " + lines[i]
		}
		all[head] = text
	}
	return all
}
