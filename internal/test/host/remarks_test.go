package host

import (
	"strings"
	"testing"

	"heddle/internal/test/testkit"
)

const blankSwitch = `
switches:
  - name: lab
    portGroups:
      - {name: web, vlan: {access: 100}}
      - {name: web prod, vlan: {access: 101}}
      - {name: db, vlan: {access: 200}}
`

// What stands behind a name was ignored before names had blanks. It still is where nothing has the whole name, which
// counts first; a name in quotes, or with %20, is meant as it is written.
func TestProxmox_ARemarkBehindANameIsNoPartOfIt(t *testing.T) {
	testkit.Long(t, "calls the hook for many guests; TestProxmox_WhatGoesWrongIsNamed has the hook")
	nic := "\nnet0: virtio=BC:24:11:00:91:NN,bridge=vmbr"
	cases := map[string]struct{ conf, group, says string }{
		"9101": {"#heddle net0=web prod" + nic + "0\n", "web prod", ""},
		"9102": {"#heddle net0=db (prod)" + nic + "0\n", "db", `"db (prod)"`},
		"9103": {"#heddle net0=lab/db # the shop's net7=web" + nic + "0\n", "db", `"lab/db # the shop's"`},
		"9104": {"#heddle net0=\"db (prod)\"" + nic + "0\n", "", "in port group db (prod)"},
		"9105": {"#heddle net0=db%2520(prod)" + nic + "0\n", "", "in port group db (prod)"},
		"9106": {"#heddle net0=nowhere (prod)" + nic + "0\n", "", "in port group nowhere (prod)"},
		"9107": {nic[1:] + "7\n", "db", `"lab/db  production"`},
		"9108": {nic[1:] + "8\n", "web prod", ""},
		"9109": {"#heddle net0=web needs=web prod,db for backups" + nic + "0\n", "web", ""},
		"9110": {"#heddle net0=web%2520prod # note" + nic + "0\n", "web prod", `"web prod # note"`},
	}
	guests := map[string]string{}
	for vmid, c := range cases {
		guests["qemu-server/"+vmid+".conf"] = strings.Replace(c.conf, "NN", vmid[2:], 1)
	}
	p := newProxmox(t, guests, "vmbr7 lab/db  production\nvmbr8\tweb prod\t# as it is called\n")
	if out, err := p.hook("9102", "pre-start"); err == nil || !strings.Contains(out, "no agent is running") {
		t.Errorf("without an agent: %v\n%s", err, out)
	}
	p.start("--config", p.file("heddle.yaml", blankSwitch))
	for vmid, c := range cases {
		out, err := p.hook(vmid, "pre-start")
		silent := c.group != "" && c.says == ""
		if (err == nil) != (c.group != "") || !strings.Contains(out, c.says) || silent && out != "" {
			t.Errorf("guest %s: %v, says\n%s", vmid, err, out)
		}
		if c.group == "" {
			continue
		}
		p.ip("tuntap add dev tap" + vmid + "i0 mode tap")
		p.mustHook(vmid, "post-start")
		if got := p.port(vmid + "/net0").PortGroup; got != c.group {
			t.Errorf("guest %s is in port group %s, not %s", vmid, got, c.group)
		}
	}
	out, err := p.hook("9109", "post-start", "PVE_MIGRATED_FROM=pve2")
	if err == nil || !strings.Contains(out, `"db for backups"`) || !strings.Contains(out, "needs web prod, and") ||
		!strings.Contains(out, "needs db, and") { // the host has no uplink
		t.Errorf("a guest that needs more arrives: %v\n%s", err, out)
	}
}
