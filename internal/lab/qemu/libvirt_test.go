package qemu_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/lab/qemu"
	"heddle/internal/lab/qemu/image"
	"heddle/internal/observe/event"
	"heddle/internal/test/testkit"
)

// domain is the XML of a guest that boots the test image; metadata is the content of Heddle's element.
func domain(t *testing.T, ctx context.Context, dir, name, mac, metadata string) string {
	t.Helper()
	img, err := image.Build(ctx, image.Options{Flavour: image.Cloud})
	if err != nil {
		t.Fatal(err)
	}
	for to, from := range map[string]string{"kernel": img.Kernel, "initrd": img.Initrd} {
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf(`<domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
 <name>%[1]s</name>
 <metadata><heddle:ports xmlns:heddle="urn:heddle:domain:1">%[4]s</heddle:ports></metadata>
 <memory unit='MiB'>128</memory>
 <os><type arch='x86_64' machine='pc'>hvm</type><kernel>%[2]s/kernel</kernel><initrd>%[2]s/initrd</initrd>
  <cmdline>console=ttyS0 quiet panic=-1 no_timer_check heddle.name=g heddle.modules=virtio_pci,virtio_net heddle.addrs=192.0.2.1/24</cmdline></os>
 <features><acpi/></features>
 <devices>
  <emulator>/usr/bin/qemu-system-x86_64</emulator>
  <interface type='ethernet'><mac address='%[3]s'/><model type='virtio'/><rom enabled='no'/></interface>
  <serial type='null'/><serial type='null'/>
 </devices>
 <qemu:commandline><qemu:arg value='-qmp'/><qemu:arg value='unix:%[2]s/%[1]s.qmp,server=on,wait=off'/></qemu:commandline>
</domain>`, name, dir, mac, metadata)
}

const plugged = `<interface type='ethernet'><mac address='52:54:00:00:02:02'/><model type='virtio'/><rom enabled='no'/></interface>`

// TestLibvirt_ADomainsAdaptersAreConnectedWhileItRuns: a real libvirtd with the packaged hook, and a real guest.
func TestLibvirt_ADomainsAdaptersAreConnectedWhileItRuns(t *testing.T) {
	needGuests(t, qemu.VirtioNet)
	testkit.Tool(t, "libvirtd", "virsh", "unshare")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	h := newHeddleHost(t, "switches: [{name: lab, portGroups: [{name: web, vlan: {access: 200}}, {name: db}]}]\n"+
		"ports: [{name: peer, switch: lab, portGroup: web, device: peer, mac: \"02:00:00:00:02:09\"}]")
	peer := vm{ns: h.namespaceVM(t, "peer", net.HardwareAddr{2, 0, 0, 0, 2, 9}, "192.0.2.9/24")}
	l := newLibvirtd(t, ctx, h, "host1")
	const mac = "52:54:00:00:02:01"
	qmp := filepath.Join(h.Dir, "vm1.qmp")
	l.must(t, ctx, domain(t, ctx, h.Dir, "vm1", mac, `<heddle:port portGroup="web" monitor="`+qmp+`"/>`), "define",
		"/dev/stdin", "--validate")
	l.must(t, ctx, "", "start", "vm1")
	h.awaitPort(t, ctx, "vm1/net0", "connected", func(p portView) bool {
		return p.State == "up" && p.PortGroup == "web" && p.MAC == mac && p.SeenMAC == mac
	})
	answers := func() {
		t.Helper()
		if _, err := peer.run(ctx, "until ping -c 1 -W 1 192.0.2.1; do sleep 0.1; done"); err != nil {
			t.Fatal(err)
		}
	}
	answers()
	h.awaitPort(t, ctx, "vm1/net0", "seen by the second monitor", func(p portView) bool {
		return p.Promiscuous == "no"
	})

	// A restart of libvirtd changes nothing for a running domain, and brings back what is missing.
	l.stop(t, ctx)
	answers()
	l.start(t, ctx)
	answers()
	l.stop(t, ctx)
	if _, err := h.Output(ctx, "port", "disconnect", "vm1/net0"); err != nil {
		t.Fatal(err)
	}
	l.start(t, ctx)
	h.awaitPort(t, ctx, "vm1/net0", "connected again", func(p portView) bool { return p.State == "up" })
	answers()

	// libvirt calls no hook when an adapter is plugged: the agent follows its events.
	l.must(t, ctx, plugged, "attach-device", "vm1", "/dev/stdin", "--live")
	h.awaitPort(t, ctx, "vm1/net1", "connected", func(p portView) bool {
		return p.State == "up" &&
			p.MAC == "52:54:00:00:02:02"
	})
	answers()

	// Nor when a link is set down: the agent follows libvirt's status of the domain.
	l.must(t, ctx, "", "domif-setlink", "vm1", mac, "down")
	h.awaitPort(t, ctx, "vm1/net0", "down", func(p portView) bool {
		return p.State == "down" && strings.Contains(p.Reason, "virsh domif-setlink vm1")
	})
	l.must(t, ctx, "", "domif-setlink", "vm1", mac, "up")
	h.awaitPort(t, ctx, "vm1/net0", "up again", func(p portView) bool { return p.State == "up" })
	answers()

	l.must(t, ctx, "", "destroy", "vm1")
	h.noPorts(t, ctx, "vm1")
}

// TestLibvirt_APortgroupOfANetworkNamesThePortGroup: libvirt's own portgroup=, on a network that stands for the switch.
func TestLibvirt_APortgroupOfANetworkNamesThePortGroup(t *testing.T) {
	needGuests(t, qemu.VirtioNet)
	testkit.Tool(t, "libvirtd", "virsh", "unshare", "ip")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	h := newHeddleHost(t, "switches: [{name: lab, portGroups: [{name: web, vlan: {access: 200}}, {name: db}]}]\n"+
		"ports: [{name: peer, switch: lab, portGroup: web, device: peer, mac: \"02:00:00:00:02:09\"}]")
	peer := vm{ns: h.namespaceVM(t, "peer", net.HardwareAddr{2, 0, 0, 0, 2, 9}, "192.0.2.9/24")}
	if _, err := h.NS.Output("ip", "link", "add", "heddle0", "up", "type", "bridge"); err != nil {
		t.Fatal(err)
	}
	l := newLibvirtd(t, ctx, h, "host1")
	l.must(t, ctx, "<network><name>heddle-lab</name><forward mode='bridge'/><bridge name='heddle0'/></network>",
		"net-create", "/dev/stdin")
	const mac = "52:54:00:00:02:01"
	on := func(name, group string) string {
		return strings.Replace(domain(t, ctx, h.Dir, name, mac, ""), "<interface type='ethernet'>",
			"<interface type='network'><source network='heddle-lab' portgroup='"+group+"'/>", 1)
	}
	if _, err := l.virsh(ctx, on("vm0", "wbe"), "create", "/dev/stdin"); err == nil ||
		!strings.Contains(err.Error(), "prepare refused: switch lab has no port group wbe; did you mean web?") {
		t.Errorf("an unknown port group: %v", err)
	}
	l.must(t, ctx, on("vm1", "web"), "create", "/dev/stdin")
	connected := func(why string) {
		t.Helper()
		h.awaitPort(t, ctx, "vm1/net0", why, func(p portView) bool {
			return p.State == "up" && p.PortGroup == "web" &&
				p.MAC == mac
		})
		if _, err := peer.run(ctx, "until ping -c 1 -W 1 192.0.2.1; do sleep 0.1; done"); err != nil {
			t.Fatal(err)
		}
		if out, err := h.NS.Output("ip", "link", "show", "master", "heddle0"); err != nil || len(out) > 0 {
			t.Errorf("%s: in the network's bridge there is %s %v", why, out, err)
		}
	}
	connected("started")
	l.stop(t, ctx)
	l.start(t, ctx) // libvirtd puts the tap into the bridge again, then calls the hook
	l.controls(t, ctx, "vm1")
	connected("after a restart of libvirtd")
	l.must(t, ctx, "", "destroy", "vm1")
	h.noPorts(t, ctx, "vm1")
}

// noPorts fails when the host has a port of the domain.
func (h *heddleHost) noPorts(t *testing.T, ctx context.Context, domain string) {
	t.Helper()
	if out, err := h.Output(ctx, "port", "list"); err != nil || strings.Contains(string(out), domain+"/") {
		t.Errorf("%s has ports still: %s %v", domain, out, err)
	}
}

// TestS99_LibvirtMovesADomainWithItsPorts: between two hosts with an agent and a libvirtd each; then it is saved,
// restored, and its QEMU killed.
func TestS99_LibvirtMovesADomainWithItsPorts(t *testing.T) {
	needGuests(t, qemu.VirtioNet)
	testkit.Tool(t, "libvirtd", "virsh", "unshare")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var hosts [2]*libvirtd
	var peers [2]vm
	for i, groups := range []string{"{name: web}, {name: here}", "{name: web}"} {
		h := newHeddleHost(t, "switches: [{name: lab, portGroups: ["+groups+
			"]}]\nports: [{name: peer, switch: lab, portGroup: web, device: peer, mac: \"02:00:00:00:02:09\"}]")
		peers[i] = vm{ns: h.namespaceVM(t, "peer", net.HardwareAddr{2, 0, 0, 0, 2, 9}, "192.0.2.9/24")}
		hosts[i] = newLibvirtd(t, ctx, h, fmt.Sprintf("host%d", i+1))
	}
	answers := func(i int) {
		t.Helper()
		if _, err := peers[i].run(ctx, "until ping -c 1 -W 1 192.0.2.1; do sleep 0.1; done"); err != nil {
			t.Fatal(err)
		}
	}
	migrate := func(name string) error {
		_, err := hosts[0].virsh(ctx, "", "migrate", name, hosts[1].uri(), "--live", "--migrateuri", "unix://"+
			filepath.Join(hosts[0].Dir, "migration"))
		return err
	}
	from, to := hosts[0], hosts[1]
	from.must(t, ctx, domain(t, ctx, from.Dir, "vm1", "52:54:00:00:02:01", `<heddle:port portGroup="web"/>`), "create",
		"/dev/stdin")
	answers(0)
	if err := migrate("vm1"); err != nil {
		t.Fatal(err)
	}
	to.awaitPort(t, ctx, "vm1/net0", "connected", func(p portView) bool {
		return p.State == "up" &&
			p.PortGroup == "web"
	})
	// S99: it waited for the guest, as libvirt had told the hook. The guest's first frame or libvirt's report that
	// it runs ended the wait, whichever came first.
	for kind, want := range map[string]string{"waiting": "is to arrive by a migration",
		"awake": "its guest runs here: (it has sent a frame|libvirt says that it runs)"} {
		out, err := to.Output(ctx, "events", "--kind", kind, "--port", "vm1/net0", "--last", "-1", "--no-follow")
		if err != nil || len(regexp.MustCompile(want).FindAllString(string(out), -1)) != 1 {
			t.Errorf("S99: events %s: %s %v", kind, out, err)
		}
	}
	answers(1)
	from.noPorts(t, ctx, "vm1")
	from.sourceWasCalledLate(t, ctx, "vm1")

	// With a monitor the source's port is silent from the guest's stop on, before its QEMU ends. The domain need not
	// have booted.
	watched := `<heddle:port portGroup="web" monitor="` + filepath.Join(from.Dir, "vm3.qmp") + `"/>`
	from.must(t, ctx, domain(t, ctx, from.Dir, "vm3", "52:54:00:00:02:03", watched), "create", "/dev/stdin")
	from.awaitPort(t, ctx, "vm3/net0", "seen by its monitor", func(p portView) bool {
		return p.State == "up" &&
			p.Promiscuous != "unknown"
	})
	if err := migrate("vm3"); err != nil {
		t.Fatal(err)
	}
	left := slices.IndexFunc(from.told(t, ctx, "vm3/net0"), func(e event.Event) bool {
		return e.Kind == event.Waiting &&
			strings.Contains(e.Text, "its guest has left by a migration: its QEMU has stopped it")
	})
	ended := slices.IndexFunc(from.told(t, ctx, "vm3/net0"), func(e event.Event) bool {
		return e.Kind == event.Disconnected
	})
	if left < 0 || ended < left {
		t.Errorf("S99: the source's port: %+v", from.told(t, ctx, "vm3/net0"))
	}
	from.noPorts(t, ctx, "vm3")
	to.must(t, ctx, "", "destroy", "vm3")

	// A domain whose port group the other host lacks stays where it is, and keeps running.
	from.must(t, ctx, domain(t, ctx, from.Dir, "vm2", "52:54:00:00:02:02", `<heddle:port portGroup="here"/>`), "create",
		"/dev/stdin", "--paused")
	if err := migrate("vm2"); err == nil ||
		!strings.Contains(err.Error(), "switch lab has no port group here; it has web") {
		t.Errorf("migrated into a port group that is not there: %v", err)
	}
	from.awaitPort(t, ctx, "vm2/net0", "where it was", func(p portView) bool {
		return p.State == "up" &&
			p.PortGroup == "here"
	})

	saved := filepath.Join(to.Dir, "saved")
	to.must(t, ctx, "", "save", "vm1", saved)
	to.noPorts(t, ctx, "vm1")
	to.must(t, ctx, "", "restore", saved)
	answers(1)
	// Like a crash, because libvirt did not ask for it. The answer may be lost with the guest: what counts is that
	// it ends.
	_, _ = to.virsh(ctx, "", "qemu-monitor-command", "vm1", "--hmp", "quit")
	for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		if out := to.must(t, ctx, "", "list", "--name"); !strings.Contains(out, "vm1") {
			break
		}
	}
	to.awaitNoPorts(t, ctx, "vm1")
}

// sourceWasCalledLate checks what the how-to says about the host that a domain leaves: libvirt calls nothing before its
// QEMU has ended, when the port has gone with its tap. A later libvirt that calls more could make the port wait without
// a monitor.
func (l *libvirtd) sourceWasCalledLate(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	var got []string
	var stopped time.Time
	for _, c := range l.calls(t) {
		if op, ok := strings.CutPrefix(c.args, name+" "); ok {
			got = append(got, op)
			if strings.HasPrefix(op, "stopped") {
				stopped = c.at
			}
		}
	}
	want := []string{"prepare begin", "start begin", "started begin", "stopped end", "release end"}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("libvirt called the source's hook with %q, the how-to has %q", got, want)
	}
	told := l.told(t, ctx, name+"/net0")
	i := slices.IndexFunc(told, func(e event.Event) bool { return e.Kind == event.Disconnected })
	if i < 0 || told[i].Time.After(stopped) {
		t.Errorf("the port was there still when libvirt called the hook at %s: %+v", stopped, told)
	}
}

// told are the events of a port.
func (h *heddleHost) told(t *testing.T, ctx context.Context, port string) (list []event.Event) {
	t.Helper()
	out, err := h.Output(ctx, "events", "--port", port, "--last", "-1", "--no-follow", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var e event.Event
		if err := d.Decode(&e); err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

// awaitNoPorts waits until the host has no port of the domain.
func (h *heddleHost) awaitNoPorts(t *testing.T, ctx context.Context, domain string) {
	t.Helper()
	for {
		out, err := h.Output(ctx, "port", "list")
		if err == nil && !strings.Contains(string(out), domain+"/") {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s has ports still: %s %v", domain, out, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestLibvirt_ADomainThatCannotBeConnectedDoesNotStart: and libvirt's error says why.
func TestLibvirt_ADomainThatCannotBeConnectedDoesNotStart(t *testing.T) {
	needGuests(t, qemu.VirtioNet)
	testkit.Tool(t, "libvirtd", "virsh", "unshare")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	h := newHeddleHost(t, "switches: [{name: lab, portGroups: [{name: web}]}]\n"+
		"ports: [{name: taken, switch: lab, portGroup: web, mac: \"52:54:00:00:02:03\"}]")
	l := newLibvirtd(t, ctx, h, "host1")
	web, noAgent := `<heddle:port portGroup="web"/>`, "HEDDLE_AGENT=nobody"
	for i, c := range []struct{ metadata, mac, setting, want string }{
		{`<heddle:port portGroup="wbe"/>`, "52:54:00:00:02:01", "",
			"heddle: domain d0: prepare refused: switch lab has no port group wbe; did you mean web?"},
		{`<heddle:port portgroup="web"/>`, "52:54:00:00:02:01", "", "attribute portgroup of <heddle:port>"},
		{web, "52:54:00:00:02:03", "", "heddle: domain d2: start refused: ports[d2/net0].mac: 52:54:00:00:02:03: " +
			"port taken"},
		{web, "52:54:00:00:02:01", noAgent, "heddle: domain d3: prepare refused: no agent is running"},
		{web, "52:54:00:00:02:01", noAgent + "\nHEDDLE_LIBVIRT_FAIL=open", ""},
		{"", "52:54:00:00:02:01", noAgent, ""},
		{web, "52:54:00:00:02:01", "", ""},
	} {
		name := fmt.Sprintf("d%d", i)
		l.settings(t, c.setting)
		_, err := l.virsh(ctx, domain(t, ctx, h.Dir, name, c.mac, c.metadata), "create", "/dev/stdin", "--paused")
		running := strings.Contains(l.must(t, ctx, "", "list", "--name"), name)
		switch {
		case c.want == "" && (err != nil || !running):
			t.Errorf("%s, %q: did not start: %v", c.metadata, c.setting, err)
		case c.want != "" && (err == nil || running || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s, %q: running %v, %v; want %q", c.metadata, c.setting, running, err, c.want)
		}
		out, errList := h.Output(ctx, "port", "list")
		if connected := strings.Contains(string(out), name+"/net0"); errList != nil ||
			connected != (c.want == "" && c.setting == "") {
			t.Errorf("%s, %q: connected %v, %v", c.metadata, c.setting, connected, errList)
		}
		if running {
			l.must(t, ctx, "", "destroy", name)
		}
	}
}
