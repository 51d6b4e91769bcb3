package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"heddle/internal/plan"
	"heddle/internal/test/testkit"
)

// proxmoxes are the nodes of a cluster of Proxmox VE, whose part is played by the test: it makes the taps, moves the
// configurations, and calls the hook as Proxmox does by its source code. The hook, the agents and the controller are
// real.
type proxmoxes struct {
	*fleet
	pve []string // of each node, its /etc/pve
	bin string   // has a program heddle
}

func newProxmoxes(f *fleet, guests ...string) *proxmoxes {
	t := f.t
	t.Helper()
	p := &proxmoxes{fleet: f, bin: t.TempDir()}
	program := fmt.Sprintf("#!/bin/sh\nexec %s \"$@\"\n", f.hosts[0].Command().Path)
	p.write(filepath.Join(p.bin, "heddle"), program, 0o755)
	shared := t.TempDir()
	for n, h := range f.hosts {
		nodes := filepath.Join(shared, "nodes")
		own := filepath.Join(nodes, fmt.Sprintf("esx%d", n), "qemu-server")
		pve := t.TempDir()
		err := errors.Join(os.MkdirAll(own, 0o700), os.Symlink(own, filepath.Join(pve, "qemu-server")),
			os.Symlink(nodes, filepath.Join(pve, "nodes")))
		if err != nil {
			t.Fatal(err)
		}
		p.pve = append(p.pve, pve)
		p.write(filepath.Join(pve, "map"), "vmbr9 dvs/web\n", 0o600)
		inside(t, h.NS, func() error {
			return errors.Join(netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "vmbr9"}}),
				up("vmbr9"))
		})
	}
	for _, content := range guests {
		p.write(p.conf(0, "9100"), content, 0o600)
	}
	return p
}

func (p *proxmoxes) write(path, content string, mode os.FileMode) {
	p.t.Helper()
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		p.t.Fatal(err)
	}
}

// conf is where a guest's configuration is while the guest is a node's.
func (p *proxmoxes) conf(n int, vmid string) string {
	return filepath.Join(p.pve[n], "qemu-server", vmid+".conf")
}

// hook calls the hook on a node.
func (p *proxmoxes) hook(n int, vmid, phase string, env ...string) {
	p.t.Helper()
	if out, err := p.calls(n, vmid, phase, env...); err != nil {
		p.t.Fatalf("node %d: hook %s %s: %v\n%s", n, vmid, phase, err, out)
	}
}

// calls is hook, and what the hook says.
func (p *proxmoxes) calls(n int, vmid, phase string, env ...string) (said string, err error) {
	p.t.Helper()
	script, err := filepath.Abs("../../../packaging/proxmox/heddle")
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(script, vmid, phase)
	cmd.Env = append(p.hosts[n].Command().Env, "PATH="+p.bin+":"+os.Getenv("PATH"), "HEDDLE_PVE_DIR="+p.pve[n],
		"HEDDLE_PROXMOX_MAP="+filepath.Join(p.pve[n], "map"), "HEDDLE_PVE_RUN_DIR="+p.pve[n])
	cmd.Env = append(cmd.Env, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err = p.hosts[n].Launch(cmd); err == nil {
		err = cmd.Wait()
	}
	return out.String(), err
}

// qemu begins a QEMU's part on a node: its tap is in the bridge.
func (p *proxmoxes) qemu(n int, run string, mac [6]byte) {
	p.t.Helper()
	const tap = "tap9100i0"
	p.guests[fmt.Sprintf("%s@%d", tap, n)] = p.hosts[n].QuietlyIn(fmt.Sprintf("g%d-%s", n, run), tap, mac)
	inside(p.t, p.hosts[n].NS, func() error {
		l, err := netlink.LinkByName(tap)
		if err != nil {
			return err
		}
		br, err := netlink.LinkByName("vmbr9")
		if err != nil {
			return err
		}
		return netlink.LinkSetMaster(l, br)
	})
}

// ends ends a QEMU's part.
func (p *proxmoxes) ends(n int) {
	p.t.Helper()
	inside(p.t, p.hosts[n].NS, func() error {
		l, err := netlink.LinkByName("tap9100i0")
		if err != nil {
			return err
		}
		return netlink.LinkDel(l)
	})
}

// arrives has the target wait for the guest, as both of a migration's nodes call the hook.
func (p *proxmoxes) arrives(run string, mac [6]byte) {
	p.t.Helper()
	const from = "PVE_MIGRATED_FROM=esx0"
	p.hook(1, "9100", "pre-start", from)
	if p.has(1) {
		p.t.Error("before its QEMU the guest's port is there")
	}
	p.qemu(1, run, mac)
	p.hook(1, "9100", "post-start", from)
	p.moves(1, "9100/net0", in("copied"), "a copy is there")
	if p.port(1, "9100/net0").Wait == nil || p.port(0, "9100/net0").Wait != nil {
		p.t.Error("the guest runs at the source, and the ports say something else")
	}
}

// refuses has the target refuse the guest for what it needs, and for what it has where it runs, unless its notes
// insist: before its QEMU is there, by the hook's error, and nothing is left behind.
func (p *proxmoxes) refuses() {
	p.t.Helper()
	conf, err := os.ReadFile(p.conf(0, "9100"))
	if err != nil {
		p.t.Fatal(err)
	}
	refused := func(notes, says string) {
		p.t.Helper()
		p.write(p.conf(0, "9100"), notes+string(conf), 0o600)
		out, err := p.calls(1, "9100", "pre-start", "PVE_MIGRATED_FROM=esx0")
		if err == nil || !strings.Contains(out, says) || p.has(1) {
			p.t.Errorf("%v, %q, want %q; the port is there: %v", err, out, says, p.has(1))
		}
	}
	refused("#heddle net0=dvs/web needs=nfs\n", "its guest needs nfs, and this host has neither")
	p.write(p.conf(0, "9100"), string(conf), 0o600)
	p.link(1, "eno2", false)
	p.hosts[1].Await("the controller says that the guest reaches the network where it runs", func() bool {
		out, err := p.calls(1, "9100", "pre-start", "PVE_MIGRATED_FROM=esx0")
		return err != nil && strings.Contains(out, "its guest reaches the physical network where it runs")
	})
	p.write(p.conf(0, "9100"), "#heddle net0=dvs/web needs=nfs force=yes\n"+string(conf), 0o600)
	p.hook(1, "9100", "pre-start", "PVE_MIGRATED_FROM=esx0")
	p.hook(1, "9100", "post-stop")
	p.link(1, "eno2", true)
	p.write(p.conf(0, "9100"), string(conf), 0o600)
	p.hosts[1].Await("the uplink is up", func() bool {
		_, err := p.calls(1, "9100", "pre-start", "PVE_MIGRATED_FROM=esx0")
		return err == nil
	})
	p.hook(1, "9100", "post-stop")
}

// has reports whether a node has the guest's port.
func (p *proxmoxes) has(n int) bool {
	s, err := p.hosts[n].State(p.t.Context())
	if err != nil {
		return true
	}
	for _, one := range s.Ports {
		if one.Name == "9100/net0" {
			return true
		}
	}
	return false
}

// A VM of a Proxmox cluster moves with its port under a controller: a migration that is given up leaves all as it was,
// the next one takes what belongs to the port along, and the source's port goes with the next hook there.
func TestS99_S100_ProxmoxMovesAVMInACluster(t *testing.T) {
	testkit.Long(t, "the package host has Proxmox moving a VM without a controller")
	t.Parallel()
	f := newPortFleet(t)
	mac := [6]byte{0xbc, 0x24, 0x11, 0, 0x91, 0}
	p := newProxmoxes(f, fmt.Sprintf("net0: virtio=%s,bridge=vmbr9\nsmbios1: uuid=%s\n", plan.MAC(mac), uuid(91)))
	p.qemu(0, "first", mac)
	p.hook(0, "9100", "pre-start")
	p.hook(0, "9100", "post-start")
	f.hosts[0].Up("9100/net0")
	send := func(n, frames int) { f.sendsAs(n, "tap9100i0", mac, frames) }
	send(0, framesBefore-1)

	p.refuses()

	p.arrives("given-up", mac)
	p.ends(1)
	p.hook(1, "9100", "post-stop")
	f.hosts[1].Await("the port is gone where the guest does not come", func() bool { return !p.has(1) })
	f.moves(0, "9100/net0", in("cancelled"), "the move is over")
	send(0, 1)
	f.counted(0, "9100/net0", framesBefore)

	p.arrives("comes", mac)
	send(1, framesAfter) // QEMU has sent the memory: the guest goes on there
	f.hosts[1].Await("the guest has arrived", func() bool { return f.port(1, "9100/net0").Wait == nil })
	if err := os.Rename(p.conf(0, "9100"), p.conf(1, "9100")); err != nil {
		t.Fatal(err)
	}
	p.ends(0)
	p.write(p.conf(0, "9101"), "net0: virtio=BC:24:11:00:91:01,bridge=vmbr8\n", 0o600)
	p.hook(0, "9101", "post-start") // of any other guest
	f.hosts[0].Await("the port has left the source", func() bool { return !p.has(0) })
	f.moves(1, "9100/net0", in("active"), "active")
	f.counted(1, "9100/net0", framesBefore+framesAfter)
	m, _ := f.moveOf(1, "9100/net0")
	f.locates(uuid(91), m.Generation)
	p.hook(1, "9100", "post-stop")
	f.hosts[1].Await("the port is gone with its guest", func() bool { return !p.has(1) })
}
