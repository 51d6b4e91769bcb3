package cni

import (
	"errors"
	"fmt"
	"net"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"heddle/internal/host/netspace"
)

// sandbox is the container's network namespace, opened.
type sandbox struct {
	*netlink.Handle
	ns   netns.NsHandle
	path string
}

func openSandbox(path string) (*sandbox, error) {
	ns, err := netns.GetFromPath(path)
	if err != nil {
		return nil, types.NewError(types.ErrInvalidNetNS,
			fmt.Sprintf("the container's network namespace %s cannot be opened", path), err.Error())
	}
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		ns.Close()
		return nil, types.NewError(types.ErrInvalidNetNS,
			fmt.Sprintf("the container's network namespace %s cannot be entered", path), err.Error())
	}
	return &sandbox{h, ns, path}, nil
}

func (s *sandbox) close() {
	s.Close()
	s.ns.Close()
}

// inside runs f in a thread whose network namespace is the container's.
func (s *sandbox) inside(f func() error) error { return netspace.In(s.path, f) }

// up sets the container's interface up, and returns its MAC.
func (s *sandbox) up(ifname string) (net.HardwareAddr, error) {
	l, err := s.LinkByName(ifname)
	if err != nil {
		return nil, fmt.Errorf("find the container's interface: %w", err)
	}
	if err := s.LinkSetUp(l); err != nil {
		return nil, fmt.Errorf("set the container's interface up: %w", err)
	}
	return l.Attrs().HardwareAddr, nil
}

// pair makes the veth pair; the host's end is up and has no addresses of the host.
func (a *attachment) pair(s *sandbox, mtu int) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = a.hostDevice(), mtu
	v := netlink.NewVeth(attrs)
	v.PeerName, v.PeerMTU, v.PeerNamespace, v.PeerHardwareAddr = a.ifname, uint32(mtu), netlink.NsFd(s.ns), a.mac
	if err := netlink.LinkAdd(v); err != nil {
		if errors.Is(err, unix.EEXIST) {
			return types.NewError(types.ErrInternal, fmt.Sprintf("the container has an interface %s, or the host a "+
				"device %s, already", a.ifname, a.hostDevice()), "DEL it first")
		}
		return fmt.Errorf("make the pair of devices %s and %s: %w", a.hostDevice(), a.ifname, err)
	}
	return netlink.LinkSetUp(v)
}

// dropPair removes the pair; it is no error if it is gone.
func dropPair(device string) error {
	l, err := netlink.LinkByName(device)
	if err == nil {
		err = netlink.LinkDel(l)
	}
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}
