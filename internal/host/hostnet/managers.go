package hostnet

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
)

// Managers returns the programs that would configure the device against the move, each with what to do about it. What
// systemd-networkd and NetworkManager report concerns the machine's first network namespace.
func (Net) Managers(name string, index uint32) (out []string) {
	names := append([]string{name}, otherNames(index)...)
	if firstNamespace() {
		out = services("/run", names, index)
	}
	return append(out, clients(names)...)
}

// otherNames returns the alternative names of the device, by which programs may know it.
func otherNames(index uint32) []string {
	l, err := netlink.LinkByIndex(int(index))
	if err != nil {
		return nil
	}
	return l.Attrs().AltNames
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

// services returns the managers whose files below the directory run say that they manage the device, which has these
// names, the usual one first.
func services(run string, names []string, index uint32) (out []string) {
	name := names[0]
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
	for _, known := range names {
		if b, err := os.ReadFile(run + "/network/ifstate." + known); err != nil || len(bytes.TrimSpace(b)) == 0 {
			continue
		}
		out = append(out, fmt.Sprintf("ifupdown has brought %s up and would take its addresses away with ifdown: "+
			"change /etc/network/interfaces to \"iface %s inet manual\", and give the host port its gateway in "+
			"Heddle's configuration", known, known))
	}
	return out
}

// clients returns the DHCP clients with a name of the device on their command line.
func clients(names []string) (out []string) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		words := strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
		known := slices.IndexFunc(names, func(name string) bool { return slices.Contains(words, name) })
		if known >= 0 && slices.Contains([]string{"dhclient", "dhcpcd", "udhcpc"}, filepath.Base(words[0])) {
			out = append(out, fmt.Sprintf("%s runs for %s (process %s): the address ends with its lease; end it, and "+
				"start it for the host port", filepath.Base(words[0]), names[known], filepath.Base(filepath.Dir(path))))
		}
	}
	return out
}
