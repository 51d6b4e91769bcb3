package guestlinks

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const uuid = "5e0c3a1e-1111-4222-8333-0000000000a1"

// status is what libvirt 9 writes of a domain that runs, shortened; links are the states of its adapters' links, "" for
// one without the element.
func status(uuid string, links ...string) string {
	var all strings.Builder
	for n, state := range links {
		link := ""
		if state != "" {
			link = fmt.Sprintf("        <link state='%s'/>\n", state)
		}
		fmt.Fprintf(&all, "      <interface type='ethernet'>\n        <mac address='52:54:00:00:02:%02x'/>\n"+
			"        <target dev='vnet%d'/>\n        <model type='virtio'/>\n%s        <alias name='net%d'/>\n"+
			"      </interface>\n", n, n, link, n)
	}
	return `<!--
WARNING: THIS IS AN AUTO-GENERATED FILE.
-->
<domstatus state='running' reason='booted' pid='4711'>
  <taint flag='custom-argv'/>
  <monitor path='/var/lib/libvirt/qemu/domain-1-vm1/monitor.sock' type='unix'/>
  <domain type='kvm' id='1'>
    <name>vm1</name>
    <uuid>` + uuid + `</uuid>
    <devices>
      <emulator>/usr/bin/qemu-system-x86_64</emulator>
` + all.String() + `    </devices>
  </domain>
</domstatus>
`
}

func TestS195_AStatusSaysWhichLinksAreDown(t *testing.T) {
	for _, c := range []struct {
		name, text string
		down       []string
		fails      bool
	}{
		{"two of three", status(uuid, "down", "", "down"), []string{"vnet0", "vnet2"}, false},
		{"set up again", status(uuid, "up", ""), nil, false},
		{"no adapter", status(uuid), nil, false},
		{"the UUID in capitals", status(strings.ToUpper(uuid), "down"), []string{"vnet0"}, false},
		{"no UUID", status("vm1", "down"), nil, true},
		{"cut short", status(uuid, "down")[:600], nil, true},
		{"empty", "", nil, true},
		{"a definition", "<domain><name>vm1</name><uuid>" + uuid + "</uuid></domain>", nil, true},
		{"too long", status(uuid, "down") + strings.Repeat(" ", maxStatus), nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := Parse(strings.NewReader(c.text))
			if (err != nil) != c.fails || err == nil && (d.UUID != uuid || d.Name != "vm1") ||
				!slices.Equal(d.Down, c.down) {
				t.Errorf("%+v, %v", d, err)
			}
		})
	}
}
