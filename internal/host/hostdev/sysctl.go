package hostdev

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sysctl returns the file of a device's kernel parameter. /proc/sys/net shows the namespace of the thread that opens
// it, as do the sockets with which the Host was opened.
func sysctl(d Device, family, name string) (string, error) {
	if strings.ContainsRune(d.Name, '/') || d.Name == "" || d.Name == "." || d.Name == ".." {
		return "", fmt.Errorf("%q is not a device name", d.Name)
	}
	return filepath.Join("/proc/sys/net", family, "conf", d.Name, name), nil
}

// readSysctl reads a parameter; "" on a kernel without it.
func readSysctl(d Device, family, name string) (string, error) {
	path, err := sysctl(d, family, name)
	if err != nil {
		return "", err
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read %s of device %s: %w", name, d.Name, err)
	}
	return strings.TrimSpace(string(b)), nil
}

// writeSysctl does nothing on a kernel without the parameter.
func writeSysctl(d Device, family, name, value string) error {
	path, err := sysctl(d, family, name)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(value), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("set %s of device %s: %w", name, d.Name, err)
	}
	return nil
}

// IPv6 reports whether the host's own IPv6 is active on the device; false on a kernel without IPv6.
func (h *Host) IPv6(d Device) (bool, error) {
	v, err := readSysctl(d, "ipv6", "disable_ipv6")
	return v == "0", err
}

// SetIPv6 switches the host's own IPv6 on a device on or off. The device of a port is the guest's cable: the host's
// neighbour and multicast-listener messages don't belong on it. On a kernel without IPv6 it does nothing.
func (h *Host) SetIPv6(d Device, on bool) error {
	v := "1"
	if on {
		v = "0"
	}
	return writeSysctl(d, "ipv6", "disable_ipv6", v)
}

// ARPIgnore returns the kernel's arp_ignore of the device: with "0" it answers ARP requests that arrive on it for any
// address of the host, with "1" only for the device's own; "" on a kernel without IPv4.
func (h *Host) ARPIgnore(d Device) (string, error) { return readSysctl(d, "ipv4", "arp_ignore") }

// SetARPIgnore sets the value that ARPIgnore returns.
func (h *Host) SetARPIgnore(d Device, value string) error {
	return writeSysctl(d, "ipv4", "arp_ignore", value)
}
