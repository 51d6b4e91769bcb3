package instance

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
)

// Paths are the directories of the agents of a machine; each agent has its own part of both.
type Paths struct {
	Run   string // locks, sockets, and the bpf file system; gone after a reboot
	State string // files that survive a reboot
}

// LockFile returns the file that the agent of that name locks while it runs.
func (p Paths) LockFile(name string) string { return filepath.Join(p.Run, name+".lock") }

// Pins returns the directory of an agent's pinned kernel objects.
func (p Paths) Pins(name string) string { return filepath.Join(p.bpffs(), name) }

// StateDir returns the directory of the agent's state.
func (p Paths) StateDir(name string) string { return filepath.Join(p.State, name) }

func (p Paths) bpffs() string { return filepath.Join(p.Run, "bpf") }

var agentName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$`)

// CheckName returns an error unless an agent may have the name: it becomes part of file names and device aliases.
func CheckName(name string) error {
	if !agentName.MatchString(name) {
		return fmt.Errorf("agent name %q: use letters, digits, - and _, at most 63", name)
	}
	return nil
}

// Privileged returns an error that names the capabilities the process lacks to change the kernel; who is the subject of
// the sentence, such as "the agent".
func Privileged(who string) error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return fmt.Errorf("read this process's capabilities: %w", err)
	}
	has := func(c uint) bool { return data[c/32].Effective&(1<<(c%32)) != 0 }
	var missing []string
	if !has(unix.CAP_NET_ADMIN) {
		missing = append(missing, "CAP_NET_ADMIN")
	}
	if !has(unix.CAP_NET_BROADCAST) { // NETLINK_LISTEN_ALL_NSID: the other ends of veths in guests' namespaces
		missing = append(missing, "CAP_NET_BROADCAST")
	}
	if !has(unix.CAP_SYS_ADMIN) && !(has(unix.CAP_BPF) && has(unix.CAP_PERFMON)) {
		missing = append(missing, "CAP_BPF and CAP_PERFMON (Linux 5.8 or newer) or CAP_SYS_ADMIN")
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("not enough privilege: %s needs %s; run it as root", who, strings.Join(missing, " and "))
}

// MachineID returns a value that differs on each machine, so that two hosts do not derive the same MAC for ports of the
// same name.
func MachineID() string {
	b, err := os.ReadFile("/etc/machine-id")
	if err != nil {
		name, _ := os.Hostname() // if neither exists, derived MACs depend on the agent's name alone
		return name
	}
	return string(b)
}
