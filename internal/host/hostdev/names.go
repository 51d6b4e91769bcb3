package hostdev

import "github.com/vishvananda/netlink"

// NamedOtherwise returns the device of the thread's network namespace that has a name as an alternative one, by which
// ip and udev know it, too; "" where there is none.
func NamedOtherwise(name string) (device string) {
	l, err := netlink.LinkByName(name) // finds alternative names as well
	if err != nil || l.Attrs().Name == name {
		return ""
	}
	return l.Attrs().Name
}
