package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/observe/event"
	"heddle/internal/plan/problem"
)

// libvirtHost is a host with a domain of two adapters, whose status is written as libvirt writes it.
type libvirtHost struct {
	*host
	libvirt string // the directory
}

const linkedUUID = "5e0c3a1e-1111-4222-8333-000000009501"

// adapters are the domain's, as in its description and in its status; down is the device whose link is down.
func adapters(down string) string {
	var all strings.Builder
	for n := range 2 {
		link := ""
		if down == fmt.Sprintf("vnet%d", n) {
			link = "<link state='down'/>"
		}
		fmt.Fprintf(&all, "<interface type='ethernet'><mac address='52:54:00:00:95:0%d'/><target dev='vnet%d'/>%s"+
			"<alias name='net%d'/></interface>", n, n, link, n)
	}
	return fmt.Sprintf("<domain type='kvm'><name>vm1</name><uuid>%s</uuid><metadata>%s</metadata><devices>%s</devices>"+
		"</domain>", linkedUUID, itsPort, all.String())
}

// sets has libvirt write the domain's status; down is the device whose link is down.
func (l *libvirtHost) sets(down string) {
	l.t.Helper()
	path := filepath.Join(l.libvirt, "qemu", "vm1.xml")
	text := "<domstatus state='running' reason='booted' pid='1'>" + adapters(down) + "</domstatus>"
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		l.t.Fatal(err)
	}
}

// calls has libvirt call its hook.
func (l *libvirtHost) calls(operation string) {
	l.t.Helper()
	cmd := l.command("libvirt-hook", "vm1", operation, "begin", "-")
	cmd.Stdin = strings.NewReader(adapters(""))
	if err := l.ns.Start(cmd); err != nil {
		l.t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		l.t.Fatal(err)
	}
}

// TestS195_ALinkThatLibvirtSetsDownIsDownAtThePort: also one that was set down while no agent ran, and of one adapter
// of two. The other adapter's port, and one of somebody else, stay up.
func TestS195_ALinkThatLibvirtSetsDownIsDownAtThePort(t *testing.T) {
	l := &libvirtHost{host: newHost(t)}
	l.libvirt = filepath.Join(l.dir, "libvirt")
	if err := os.MkdirAll(filepath.Join(l.libvirt, "qemu"), 0o755); err != nil {
		t.Fatal(err)
	}
	guest := l.guest("vnet0", "52:54:00:00:95:00", "192.0.2.1/24")
	l.guest("vnet1", "52:54:00:00:95:01", "192.0.2.2/24")
	peer := l.guest("peer", "52:54:00:00:95:09", "192.0.2.9/24")
	config := l.file("heddle.yaml", hookSwitch+"ports: [{name: peer, switch: lab, portGroup: web, device: peer}]\n")
	l.start("--config", config, "--libvirt-dir", l.libvirt)
	l.calls("start")
	l.sets("")
	l.awaitPort("vm1/net0", api.Up)
	if !pings(peer, "192.0.2.1") {
		t.Fatal("the guest is not reached")
	}
	down := func(why string) {
		t.Helper()
		l.awaitPort("vm1/net0", api.Down)
		p := l.port("vm1/net0")
		if p.ReasonCode != problem.LinkSetDown || !strings.Contains(p.Reason, "virsh domif-setlink vm1 vnet0 up") {
			t.Errorf("%s: %+v", why, p)
		}
		if reaches(peer, "192.0.2.1") {
			t.Errorf("%s: a frame comes to the guest", why)
		}
		for _, other := range []string{"vm1/net1", "peer"} {
			if p := l.port(other); p.State != api.Up {
				t.Errorf("%s: port %s is %s: %s", why, other, p.State, p.Reason)
			}
		}
	}
	neverUp := func(why string) { // since the agent's start
		t.Helper()
		for _, e := range l.told() {
			if e.Kind == event.Link && e.Port == "vm1/net0" && e.To == "up" {
				t.Errorf("%s: the port was up: %+v", why, e)
			}
		}
	}
	l.sets("vnet0")
	down("set down")
	l.kill(syscall.SIGKILL)
	l.start("--libvirt-dir", l.libvirt)
	down("after a restart of the agent")
	neverUp("after a restart of the agent")
	l.sets("")
	l.awaitPort("vm1/net0", api.Up)
	l.await("the guest is reached again", func() bool { return reaches(peer, "192.0.2.1") })
	l.kill(syscall.SIGKILL)
	l.sets("vnet0")
	l.start("--libvirt-dir", l.libvirt)
	down("set down while no agent ran")
	neverUp("set down while no agent ran")
	if !pings(guest, "192.0.2.1") { // the guest itself is not touched
		t.Error("the guest's own address does not answer")
	}
	l.calls("stopped")
	if err := os.Remove(filepath.Join(l.libvirt, "qemu", "vm1.xml")); err != nil {
		t.Fatal(err)
	}
	l.calls("start")
	l.awaitPort("vm1/net0", api.Up)
}
