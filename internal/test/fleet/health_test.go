package fleet

import (
	"fmt"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/realhost"
)

// Four hosts in two racks probe the physical network. A VLAN that a port of a physical switch drops, and an MTU that is
// too low there, are found and named with the remedy, by each controller and on the host itself; they are gone after
// the repair.
func TestS109_HostsFindWhatThePhysicalNetworkLacks(t *testing.T) {
	testkit.Long(t, "makes each fault of the physical network and repairs it; "+
		"TestS109_AHostWithoutAHealthCheckAnswersProbes has the health check")
	t.Parallel()
	testkit.Tool(t, "nft")
	r := newRacks(t)
	for _, name := range []string{"ctl1", "ctl2", "ctl3"} {
		r.await(name+" shows all hosts", func() error { return r.up(name) })
	}
	text, err := r.in("ctl1", "heddle", "--controller", r.controllerSocket("ctl1"), "definition", "show")
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if _, err := r.controller("ctl1").Define(t.Context(), api.Define{File: "two-racks.yaml",
		Content: strings.Replace(text, "kind: distributed", "kind: distributed\n  healthCheck: true", 1),
		Wait:    realhost.Patience}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ctl1", "ctl2", "ctl3"} {
		r.await(name+" finds nothing wrong", func() error { return r.found(name, "") })
	}

	r.must("tor-a", "nft", "add table bridge t; add chain bridge t f { type filter hook forward priority 0; }; "+
		"add rule bridge t f iifname esx2-eno1 vlan id 20 drop; add rule bridge t f oifname esx2-eno1 vlan id 20 drop")
	for _, name := range []string{"ctl1", "ctl3"} {
		r.await(name+" names the VLAN", func() error {
			return r.found(name, "VLAN 20 does not pass between esx2/uplink1 and ")
		})
	}
	r.await("the host is told", func() error { // by its own controller, which may find it after the others
		out, err := r.in("esx2", "heddle", "health")
		if err == nil || !strings.Contains(out, "VLAN 20 does not pass between esx2/uplink1") ||
			!strings.Contains(strings.Join(strings.Fields(out), " "),
				"add it to the trunk of the physical switch port of") {
			return fmt.Errorf("the host says %v: %s", err, out)
		}
		if out, err := r.in("esx2", "heddle", "events", "--no-follow", "--kind", "network"); err != nil ||
			!strings.Contains(out, "VLAN 20 does not pass") {
			return fmt.Errorf("its events are %v: %s", err, out)
		}
		return nil
	})
	r.must("tor-a", "nft", "flush ruleset")
	r.await("nothing is wrong after the repair", func() error { return r.found("ctl2", "") })

	r.must("tor-b", "ip", "link", "set", "esx1-eno2", "mtu", "1400")
	r.await("the MTU is named", func() error {
		return r.found("ctl2", "packets of 1500 bytes, the MTU of switch prod, do not pass between esx1/uplink2 and ",
			"those up to 1400 do")
	})
	r.must("tor-b", "ip", "link", "set", "esx1-eno2", "mtu", "1500")
	r.await("nothing is wrong after the repair", func() error { return r.found("ctl2", "") })
}

// must runs a command in a node of the lab.
func (r *racks) must(node string, command ...string) {
	r.t.Helper()
	if out, err := r.in(node, command...); err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
}

// found returns what is missing until a controller finds one fault of the physical network whose text has these parts;
// with "", until all paths pass.
func (r *racks) found(controller string, parts ...string) error {
	h, err := r.controller(controller).NetworkHealth(r.t.Context())
	if err != nil {
		return err
	}
	var wrong []string
	for _, f := range h.Findings {
		if !f.Note {
			wrong = append(wrong, f.Text)
		}
	}
	switch {
	case parts[0] == "" && len(wrong) == 0 && h.Hosts == 4 && h.Uplinks == 8 && h.Paths > 0 && h.Passing == h.Paths:
		return nil
	case parts[0] == "" || len(wrong) != 1:
		return fmt.Errorf("%d hosts, %d uplinks, %d of %d paths, %q", h.Hosts, h.Uplinks, h.Passing, h.Paths, wrong)
	}
	for _, p := range parts {
		if !strings.Contains(wrong[0], p) {
			return fmt.Errorf("found %q", wrong)
		}
	}
	return nil
}
