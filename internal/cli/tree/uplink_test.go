package tree

import (
	"strings"
	"testing"
)

func TestUplink_WhatADeviceDoesNotLetBeChangedIsAWarning(t *testing.T) {
	s := furnished()
	u := &s.state.Uplinks[0]
	u.Changed, u.Warnings = []string{"promiscuous mode on", "rx-lro off"}, []string{
		"rx-vlan-filter of device eno1 is on"}
	c := newConsole(t, s)
	if out := c.must("uplink", "list"); !strings.HasSuffix(out, "\nwarning: uplink "+u.Switch+"/"+u.Name+
		": rx-vlan-filter of device eno1 is on\n") {
		t.Errorf("list:\n%s", out)
	}
	out := c.must("uplink", "show", u.Name, "--switch", u.Switch)
	if !strings.Contains(out, "promiscuous mode on, rx-lro off\n") ||
		!strings.Contains(out, "rx-vlan-filter of device eno1 is on\n") {
		t.Errorf("show:\n%s", out)
	}
}
