package smoke

import (
	"context"
	"errors"
	"testing"

	"github.com/vishvananda/netlink"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
	"heddle/internal/test/testkit/realhost"
)

// host is a host with the real program.
type host struct{ *realhost.Host }

// newHost prepares a host without an agent.
func newHost(t *testing.T, ns *netns.NS) *host {
	t.Helper()
	return &host{realhost.New(t, ns)}
}

// up waits until the ports and uplinks are up.
func (h *host) up(names ...string) {
	h.T.Helper()
	for _, name := range names {
		h.Await(name+" is up", func() bool { return h.stateOf(name) == api.Up })
	}
}

// stateOf is the state of a port or uplink, empty when there is none of that name.
func (h *host) stateOf(name string) api.PortState {
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

// counter is a counter of a port, or the count of a reason for which its frames were dropped.
func (h *host) counter(port, name string) uint64 {
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

// refused is how many copies were refused at a port or uplink for a reason.
func (h *host) refused(port, reason string) (n uint64) {
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

// plug makes a veth whose end at the host has the name; what it gives is the other end, eth0 with that address in a
// namespace of its own.
func (h *host) plug(device string, mac [6]byte) *cable.End {
	h.T.Helper()
	return h.plugInto(testkit.NS(h.T, device), device, mac)
}

// plugInto is plug with a namespace that is there.
func (h *host) plugInto(ns *netns.NS, device string, mac [6]byte) *cable.End {
	h.T.Helper()
	handle, err := ns.Handle()
	if err != nil {
		h.T.Fatal(err)
	}
	defer handle.Close()
	err = h.do(func() error {
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

// do runs f in the host's namespace.
func (h *host) do(f func() error) error {
	if h.NS == nil {
		return f()
	}
	return h.NS.Do(f)
}
