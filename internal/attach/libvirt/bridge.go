package libvirt

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// LeaveBridge takes a device of this network namespace out of its bridge, if it is in one.
func LeaveBridge(device string) error {
	l, err := netlink.LinkByName(device)
	if err != nil {
		return fmt.Errorf("find device %s: %w", device, err)
	}
	if l.Attrs().MasterIndex == 0 {
		return nil
	}
	if err := netlink.LinkSetNoMaster(l); err != nil {
		return fmt.Errorf("take device %s out of its bridge: %w", device, err)
	}
	return nil
}
