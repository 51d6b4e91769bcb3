package realhost

import (
	"context"
	"errors"
	"os"

	"github.com/vishvananda/netlink"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// Up waits until the ports and uplinks are up.
func (h *Host) Up(names ...string) {
	h.T.Helper()
	for _, name := range names {
		h.Await(name+" is up", func() bool { return h.StateOf(name) == api.Up })
	}
}

// StateOf is the state of a port or uplink, empty when there is none of that name.
func (h *Host) StateOf(name string) api.PortState {
	h.T.Helper()
	s, err := h.State(context.Background())
	if err != nil {
		h.T.Fatal(err)
	}
	for _, p := range s.Ports {
		if p.Name == name {
			return p.State
		}
	}
	for _, u := range s.Uplinks {
		if u.Name == name {
			return u.State
		}
	}
	return ""
}

// Counter is a counter of a port, or the count of a reason for which its frames were dropped.
func (h *Host) Counter(port, name string) uint64 {
	h.T.Helper()
	all, err := h.Stats(h.T.Context())
	if err != nil {
		h.T.Fatal(err)
	}
	for _, s := range all {
		if s.Name != port {
			continue
		}
		for _, c := range append(s.Counters, s.Extra...) {
			if c.Name == name {
				return c.Value
			}
		}
		for _, r := range s.Drops {
			if r.Reason == name {
				return r.Value
			}
		}
	}
	return 0
}

// Refused is how many copies were refused at a port or uplink for a reason.
func (h *Host) Refused(port, reason string) (n uint64) {
	h.T.Helper()
	all, err := h.Stats(h.T.Context())
	if err != nil {
		h.T.Fatal(err)
	}
	for _, s := range all {
		if s.Name != port {
			continue
		}
		for _, r := range s.Refused {
			if r.Reason == reason {
				n += r.Value
			}
		}
	}
	return n
}

// Plug makes a veth whose end at the host has the name; what it gives is the other end, eth0 with that address in a
// namespace of its own.
func (h *Host) Plug(device string, mac [6]byte) *cable.End {
	h.T.Helper()
	return h.PlugInto(testkit.NS(h.T, device), device, mac)
}

// PlugInto is Plug with a namespace that is there.
func (h *Host) PlugInto(ns *netns.NS, device string, mac [6]byte) *cable.End {
	h.T.Helper()
	handle, err := ns.Handle()
	if err != nil {
		h.T.Fatal(err)
	}
	defer handle.Close()
	err = h.Do(func() error {
		veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: device}, PeerName: "eth0",
			PeerNamespace: netlink.NsFd(int(handle)), PeerHardwareAddr: mac[:]}
		return errors.Join(netlink.LinkAdd(veth), netlink.LinkSetUp(veth))
	})
	if err == nil {
		err = ns.Do(func() error {
			l, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			return netlink.LinkSetUp(l)
		})
	}
	if err != nil {
		h.T.Fatalf("make veth %s: %v", device, err)
	}
	return cable.Open(h.T, ns, "eth0")
}

// Do runs f in the host's namespace.
func (h *Host) Do(f func() error) error {
	if h.NS == nil {
		return f()
	}
	return h.NS.Do(f)
}

// QuietlyIn is PlugInto with a new namespace of that name, whose stack sends nothing of its own.
func (h *Host) QuietlyIn(space, device string, mac [6]byte) *cable.End {
	h.T.Helper()
	ns := testkit.NS(h.T, space)
	err := ns.Do(func() error { return os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0) })
	if err != nil {
		h.T.Fatal(err)
	}
	return h.PlugInto(ns, device, mac)
}
