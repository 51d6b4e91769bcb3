package smoke

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
)

// pairsConfig has two switches, which device pairs can join.
const pairsConfig = `
switches:
- {name: lab, portGroups: [{name: open, security: {forgedTransmits: accept, promiscuous: accept}}]}
- {name: other, portGroups: [{name: open, security: {forgedTransmits: accept, promiscuous: accept}}]}
`

// One device pair between two switches is a cable, two are a loop.
func TestS110_WhatDevicesShowIsRefusedOrBlocked(t *testing.T) {
	h := newHost(t, testkit.NS(t, "loop"))
	h.Start(pairsConfig)
	pair := func(a, b string) {
		err := h.Do(func() error {
			veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: a}, PeerName: b}
			peer := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: b}}
			return errors.Join(netlink.LinkAdd(veth), netlink.LinkSetUp(veth), netlink.LinkSetUp(peer))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	pair("x0", "y0")
	pair("x1", "y1")
	connect := func(name, sw, device string) (string, error) {
		out, err := h.Output(context.Background(), "port", "connect", name, "--switch", sw, "--port-group", "open",
			"--device", device)
		return string(out), err
	}
	for _, p := range [][3]string{{"x0", "lab", "x0"}, {"y0", "other", "y0"}, {"x1", "lab", "x1"}} {
		// one link is legitimate
		if out, err := connect(p[0], p[1], p[2]); err != nil {
			t.Fatalf("%v: %v %s", p, err, out)
		}
	}
	_, err := connect("y1", "other", "y1")
	if err == nil || !strings.Contains(err.Error(), "would close a loop") || !strings.Contains(err.Error(), "x0") ||
		!strings.Contains(err.Error(), "y1") {
		t.Fatalf("the second link: %v", err)
	}
	if h.StateOf("y1") != "" {
		t.Error("the port was made")
	}
	// Devices that appear later close it: the port is blocked at once, and comes back when the other link is gone.
	if err := h.Do(func() error {
		l, err := netlink.LinkByName("y1")
		return errors.Join(err, netlink.LinkDel(l))
	}); err != nil {
		t.Fatal(err)
	}
	if out, err := connect("y1", "other", "y1"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	pair("x1", "y1")
	h.Await("y1 is blocked", func() bool { return h.StateOf("y1") == api.Blocked })
	if err := h.Do(func() error {
		l, err := netlink.LinkByName("x0")
		return errors.Join(err, netlink.LinkDel(l))
	}); err != nil {
		t.Fatal(err)
	}
	h.Up("y1")
}
