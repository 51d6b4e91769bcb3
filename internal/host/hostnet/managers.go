package hostnet

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Managers returns the programs that would configure the device against the move, each with what to do about it. What
// systemd-networkd and NetworkManager report concerns the machine's first network namespace.
func (Net) Managers(name string, index uint32) (out []string) {
	if firstNamespace() {
		out = services("/run", name, index)
	}
	return append(out, clients(name)...)
}

// firstNamespace reports whether the process is in the network namespace of process 1; true if that is unknown.
func firstNamespace() bool {
	first, err := os.Readlink("/proc/1/ns/net")
	if err != nil {
		return true
	}
	own, err := os.Readlink("/proc/thread-self/ns/net")
	return err != nil || own == first
}

// services returns the managers whose files below the directory run say that they manage the device.
func services(run, name string, index uint32) (out []string) {
	if b, err := os.ReadFile(fmt.Sprintf("%s/systemd/netif/links/%d", run, index)); err == nil &&
		!bytes.Contains(b, []byte("ADMIN_STATE=unmanaged")) {
		out = append(out, fmt.Sprintf("systemd-networkd manages %s and may give it its addresses again: put [Link] "+
			"Unmanaged=yes into its .network file, and write one for the host port", name))
	}
	if b, err := os.ReadFile(fmt.Sprintf("%s/NetworkManager/devices/%d", run, index)); err == nil &&
		bytes.Contains(b, []byte("managed=true")) {
		out = append(out, fmt.Sprintf("NetworkManager manages %s and may give it its addresses again: run nmcli "+
			"device set %s managed no", name, name))
	}
	if b, err := os.ReadFile(run + "/network/ifstate." + name); err == nil && len(bytes.TrimSpace(b)) > 0 {
		out = append(out, fmt.Sprintf("ifupdown has brought %s up and would take its addresses away with ifdown: "+
			"change /etc/network/interfaces to \"iface %s inet manual\", and write a stanza for the host port", name,
			name))
	}
	return out
}

// clients returns the DHCP clients with the device on their command line.
func clients(name string) (out []string) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		words := strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
		if slices.Contains([]string{"dhclient", "dhcpcd", "udhcpc"}, filepath.Base(words[0])) &&
			slices.Contains(words, name) {
			out = append(out, fmt.Sprintf("%s runs for %s (process %s): the address ends with its lease; end it, and "+
				"start it for the host port", filepath.Base(words[0]), name, filepath.Base(filepath.Dir(path))))
		}
	}
	return out
}
