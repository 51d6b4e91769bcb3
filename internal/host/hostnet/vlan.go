package hostnet

import (
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"
)

// VLANDevices returns the VLAN devices on the device that have addresses of more than link scope, by name.
func (Net) VLANDevices(index uint32) ([]string, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list the devices: %w", err)
	}
	var found []string
	for _, l := range vlansOn(links, index) {
		addresses, err := netlink.AddrList(l, netlink.FAMILY_ALL)
		if err != nil {
			return nil, fmt.Errorf("list the addresses of device %s: %w", l.Attrs().Name, err)
		}
		if slices.ContainsFunc(addresses, func(a netlink.Addr) bool { return !a.IP.IsLinkLocalUnicast() }) {
			found = append(found, l.Attrs().Name)
		}
	}
	slices.Sort(found)
	return found, nil
}

func vlansOn(links []netlink.Link, index uint32) (found []netlink.Link) {
	for _, l := range links {
		if l.Type() == "vlan" && l.Attrs().ParentIndex == int(index) {
			found = append(found, l)
		}
	}
	return found
}
