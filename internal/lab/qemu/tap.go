package qemu

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"heddle/internal/lab/netns"
)

// inNS runs f on a thread inside the namespace; nil means the caller's.
func inNS(ns *netns.NS, f func() error) error {
	if ns != nil {
		return ns.Do(f)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return f()
}

// CreateTap makes a persistent tap device in the form that QEMU needs (frames with a virtio-net header, so that
// checksums and segmentation can be left to the other side) and brings it up. With more than one queue it is a
// multi-queue tap. An MTU of 0 leaves the kernel's default.
func CreateTap(ns *netns.NS, name string, queues, mtu int) error {
	flags := netlink.TUNTAP_NO_PI | netlink.TUNTAP_VNET_HDR | netlink.TUNTAP_TUN_EXCL
	if queues > 1 {
		flags |= netlink.TUNTAP_MULTI_QUEUE
	}
	tap := &netlink.Tuntap{
		LinkAttrs: netlink.LinkAttrs{Name: name},
		Mode:      netlink.TUNTAP_MODE_TAP, Flags: flags,
		// One descriptor is enough to make the device; QEMU opens its own, one for each queue.
		Queues: 1,
	}
	err := inNS(ns, func() error {
		err := netlink.LinkAdd(tap)
		for _, f := range tap.Fds {
			f.Close()
		}
		if err != nil {
			return err
		}
		if mtu != 0 {
			if err := netlink.LinkSetMTU(tap, mtu); err != nil {
				return errors.Join(fmt.Errorf("set its MTU to %d: %w", mtu, err), netlink.LinkDel(tap))
			}
		}
		if err := netlink.LinkSetUp(tap); err != nil {
			return errors.Join(err, netlink.LinkDel(tap))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("create tap %s: %w", name, err)
	}
	return nil
}

// DeleteTap removes a tap device; it is no error if it, or its namespace, is gone already.
func DeleteTap(ns *netns.NS, name string) error {
	err := inNS(ns, func() error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return netlink.LinkDel(link)
	})
	var gone netlink.LinkNotFoundError
	if err == nil || errors.As(err, &gone) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return fmt.Errorf("delete tap %s: %w", name, err)
}

// ensureTap makes the tap if it does not exist, and returns whether it did. A device of that name that is no tap is an
// error.
func ensureTap(ns *netns.NS, name string, queues, mtu int) (created bool, err error) {
	var link netlink.Link
	err = inNS(ns, func() error {
		var err error
		link, err = netlink.LinkByName(name)
		return err
	})
	var gone netlink.LinkNotFoundError
	if errors.As(err, &gone) {
		return true, CreateTap(ns, name, queues, mtu)
	}
	if err != nil {
		return false, fmt.Errorf("tap %s: %w", name, err)
	}
	if link.Type() != "tuntap" && link.Type() != "tun" {
		return false, fmt.Errorf("device %s is not a tap but %s", name, link.Type())
	}
	return false, nil
}

// localMAC makes a unicast, locally administered address from a name.
func localMAC(name string) net.HardwareAddr {
	h := fnv.New64a()
	h.Write([]byte(name))
	sum := h.Sum(nil)
	return append(net.HardwareAddr{0x02}, sum[3:8]...)
}
