package host

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/spec"
	"heddle/internal/test/testkit"
)

const hookSwitch = `
switches:
  - name: lab
    portGroups:
      - {name: web, vlan: {access: 100}}
      - {name: db, vlan: {access: 200}}
`

// script runs one of the scripts that the package installs, on the host.
func (h *host) script(path string, env []string, args ...string) (string, error) {
	h.t.Helper()
	abs, err := filepath.Abs(filepath.Join("../../../packaging", path))
	if err != nil {
		h.t.Fatal(err)
	}
	cmd := exec.Command(abs, args...)
	cmd.Env = append(h.command().Env, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := h.ns.Start(cmd); err != nil {
		h.t.Fatal(err)
	}
	err = cmd.Wait()
	return out.String(), err
}

// proxmox is a host with the configuration of guests as Proxmox VE keeps it.
type proxmox struct {
	*host
	env []string
}

func newProxmox(t *testing.T, guests map[string]string, mapping string) *proxmox {
	t.Helper()
	h := newHost(t)
	pve := t.TempDir()
	for path, content := range guests {
		file := filepath.Join(pve, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &proxmox{h, []string{"HEDDLE_PVE_DIR=" + pve, "HEDDLE_PROXMOX_MAP=" + h.file("proxmox.map", mapping)}}
}

func (p *proxmox) hook(vmid, phase string, env ...string) (string, error) {
	p.t.Helper()
	return p.script("proxmox/heddle", append(slices.Clone(p.env), env...), vmid, phase)
}

func (p *proxmox) mustHook(vmid, phase string, env ...string) {
	p.t.Helper()
	if out, err := p.hook(vmid, phase, env...); err != nil {
		p.t.Fatalf("hook %s %s: %v\n%s", vmid, phase, err, out)
	}
}

// where returns the bridge of the device according to "ip link"; "" for none.
func (h *host) where(device string) string {
	h.t.Helper()
	_, after, found := strings.Cut(run(h.t, h.ns, "ip -o link show dev "+device), " master ")
	if !found {
		return ""
	}
	return strings.Fields(after)[0]
}

func TestProxmox_TheAdaptersOfAVMGoFromTheirBridgesToTheirPortGroups(t *testing.T) {
	p := newProxmox(t, map[string]string{"qemu-server/9001.conf": `#a web server
#heddle net2=db
boot: order=scsi0
memory: 2048
name: web1
net0: virtio=BC:24:11:00:90:01,bridge=vmbr0,firewall=1,tag=100
net1: e1000=BC:24:11:00:90:02,bridge=vmbr1
net2: virtio=BC:24:11:00:90:03,bridge=vmbr0
net3: virtio=BC:24:11:00:90:04,bridge=vmbr0,tag=300
smbios1: manufacturer=SGVkZGxl,uuid=6F9619FF-8b86-d011-b42d-00c04fc96401,base64=1
[snap]
smbios1: uuid=00000000-0000-0000-0000-000000000000
net4: virtio=BC:24:11:00:90:05,bridge=vmbr1
`, "qemu-server/90010.conf": "net0: virtio=BC:24:11:00:90:10,bridge=vmbr5\n"},
		"# bridge  port group\nvmbr0:100 lab/web\nvmbr1 web\n")
	if out, err := p.hook("9001", "pre-start"); err == nil || !strings.Contains(out, "no agent is running") {
		t.Errorf("a guest starts without an agent: %v\n%s", err, out)
	}
	p.start("--config", p.file("heddle.yaml", hookSwitch))
	p.mustHook("9001", "pre-start")
	for _, bridge := range []string{"vmbr0", "vmbr1", "fwbr9001i0"} {
		p.ip("link add " + bridge + " type bridge")
	}
	for tap, bridge := range map[string]string{"tap9001i0": "fwbr9001i0", "tap9001i1": "vmbr1", "tap9001i2": "vmbr0",
		"tap9001i3": "vmbr0"} {
		t.Run(tap, func(t *testing.T) {
			p.ip("tuntap add dev " + tap + " mode tap")
			p.ip("link set " + tap + " up master " + bridge)
		})
	}
	for range 2 { // as after an adapter was added to a running guest
		p.mustHook("9001", "post-start")
		for i, group := range []string{"web", "web", "db"} {
			got := p.port(fmt.Sprintf("9001/net%d", i))
			tap := fmt.Sprintf("tap9001i%d", i)
			if got.PortGroup != group || got.Device != tap || got.Owner != "proxmox/9001" ||
				got.MAC != fmt.Sprintf("bc:24:11:00:90:%02x", i+1) ||
				got.VM != "6f9619ff-8b86-d011-b42d-00c04fc96401" || got.Adapter != fmt.Sprintf("net%d", i) {
				t.Errorf("adapter %d: %+v", i, got)
			}
			if b := p.where(tap); b != "" {
				t.Errorf("%s is still in bridge %s", tap, b)
			}
		}
	}
	if b := p.where("tap9001i3"); b != "vmbr0" {
		t.Errorf("an adapter of VLAN 300, which nothing maps, is in bridge %q", b)
	}
	if out := p.must("port", "list"); strings.Contains(out, "net3") || strings.Contains(out, "net4") {
		t.Errorf("ports that nobody asked for:\n%s", out)
	}
	p.must("port", "connect", "90010/net0", "--port-group", "web") // another guest's
	p.mustHook("9001", "pre-stop")
	p.ip("link del tap9001i0")
	for range 2 {
		p.mustHook("9001", "post-stop")
	}
	if out := p.must("port", "list"); strings.Contains(out, "9001/net") || !strings.Contains(out, "90010/net0") {
		t.Errorf("after the stop:\n%s", out)
	}
}

// TestS99_ProxmoxMovesAVM: as Proxmox calls the hook on both nodes of a migration.
func TestS99_ProxmoxMovesAVM(t *testing.T) {
	p := newProxmox(t, map[string]string{
		"nodes/pve2/qemu-server/9005.conf": "net0: virtio=BC:24:11:00:95:01,bridge=vmbr9,tag=100\n",
		"qemu-server/9006.conf":            "net0: virtio=BC:24:11:00:96:01,bridge=vmbr9,tag=100\n",
		"qemu-server/9007.conf":            "net0: virtio=BC:24:11:00:97:01,bridge=vmbr9,tag=100\n",
	}, "vmbr9:100 lab/web\n")
	p.start("--config", p.file("heddle.yaml", hookSwitch))
	p.ip("link add vmbr9 type bridge")
	tap := func(vmid string) {
		p.ip("tuntap add dev tap" + vmid + "i0 mode tap")
		p.ip("link set tap" + vmid + "i0 up master vmbr9")
	}
	tap("9005")
	if out, err := p.hook("9005", "pre-start"); err == nil ||
		!strings.Contains(out, "guest 9005 has no configuration") {
		t.Errorf("a guest of another node: %v %s", err, out)
	}
	from := "PVE_MIGRATED_FROM=pve2"
	p.mustHook("9005", "pre-start", from)
	p.mustHook("9005", "post-start", from)
	waits := func(port, mac string) {
		t.Helper()
		if v := p.port(port); v.Wait == nil || v.Wait.Left || v.PortGroup != "web" || v.MAC != mac {
			t.Errorf("%s: %+v", port, v)
		}
	}
	waits("9005/net0", "bc:24:11:00:95:01")
	if b := p.where("tap9005i0"); b != "" {
		t.Errorf("the tap is still in bridge %s", b)
	}
	if out, err := p.hook("9005", "post-start", "PVE_MIGRATED_FROM=../nodes/pve2"); err == nil ||
		!strings.Contains(out, "impossible name") {
		t.Errorf("a node's name that is a path: %v %s", err, out)
	}
	// From another cluster no node is named: the arguments of the VM's QEMU say it.
	run := t.TempDir()
	for vmid, argument := range map[string]string{"9006": "-incoming", "9007": "-S"} {
		t.Run(vmid, func(t *testing.T) {
			tap(vmid)
			qemu := exec.Command("sh", "-c", "read line", "kvm", argument, "defer")
			hold, err := qemu.StdinPipe()
			if err == nil {
				err = qemu.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { hold.Close(); _ = qemu.Wait() })
			if err := os.WriteFile(filepath.Join(run, vmid+".pid"), []byte(strconv.Itoa(qemu.Process.Pid)+"\n"),
				0o600); err != nil {
				t.Fatal(err)
			}
			p.mustHook(vmid, "post-start", "HEDDLE_PVE_RUN_DIR="+run)
		})
	}
	waits("9006/net0", "bc:24:11:00:96:01")
	if v := p.port("9007/net0"); v.Wait != nil {
		t.Errorf("a guest that starts waits: %+v", v)
	}
	// 9006 goes to another node: its configuration and its tap go, and no hook runs for it. The tap of 9007 is
	// missing, but its configuration is here: its ports stay. So do the ports of 9005, which has a tap and no
	// configuration here.
	if err := os.Remove(filepath.Join(strings.TrimPrefix(p.env[0], "HEDDLE_PVE_DIR="),
		"qemu-server/9006.conf")); err != nil {
		t.Fatal(err)
	}
	p.ip("link del tap9006i0")
	p.ip("link del tap9007i0")
	p.mustHook("9005", "post-start", from)
	if out := p.must("port", "list"); strings.Contains(out, "9006/") || !strings.Contains(out, "9007/net0") ||
		!strings.Contains(out, "9005/net0") {
		t.Errorf("after the migration:\n%s", out)
	}
	waits("9005/net0", "bc:24:11:00:95:01")
}

func TestProxmox_AContainersVethCarriesTraffic(t *testing.T) {
	p := newProxmox(t, map[string]string{
		"lxc/9002.conf": "arch: amd64\nnet0: name=eth0,bridge=vmbr0,hwaddr=02:00:00:00:92:00,ip=dhcp,type=veth\n",
	}, "vmbr0 lab/web\n")
	p.start("--config", p.file("heddle.yaml", hookSwitch))
	p.ip("link add vmbr0 type bridge")
	a := p.guest("veth9002i0", "02:00:00:00:92:00", "192.0.2.10/24")
	b := p.guest("pb", "02:00:00:00:00:0b", "192.0.2.11/24")
	p.ip("link set veth9002i0 up master vmbr0")
	p.must("port", "connect", "b", "--port-group", "web", "--device", "pb")
	p.mustHook("9002", "post-start")
	p.awaitPort("9002/net0", api.Up)
	p.awaitPort("b", api.Up)
	if !pings(a, "192.0.2.11") || !pings(b, "192.0.2.10") {
		t.Error("the container is not reached")
	}
}

// A guest without a UUID is known by its number in its cluster: the same on each node, and another one in each cluster.
func TestS78_ProxmoxGuestsWithoutAUUIDAreKnownByTheirNumber(t *testing.T) {
	testkit.Long(t, "calls the hook for many guests; TestS99_ProxmoxMovesAVM has the hook")
	seen := map[string]string{}
	for node, c := range map[string]struct{ cluster, vmid string }{"node 1": {"alpha", "9002"}, "node 2": {"alpha",
		"9002"}, "another guest": {"alpha", "9005"}, "another cluster": {"beta", "9002"}} {
		p := newProxmox(t, map[string]string{
			"lxc/" + c.vmid + ".conf": "net0: name=eth0,bridge=vmbr0,hwaddr=02:00:00:00:92:00,type=veth\n",
			"corosync.conf":           "totem {\n  cluster_name: " + c.cluster + "\n}\n",
		}, "vmbr0 lab/web\n")
		p.start("--config", p.file("heddle.yaml", hookSwitch))
		p.guest("veth"+c.vmid+"i0", "02:00:00:00:92:00", "192.0.2.10/24")
		p.mustHook(c.vmid, "post-start")
		got := p.port(c.vmid + "/net0")
		who := c.cluster + "/" + c.vmid
		if other, known := seen[got.VM]; !spec.ValidUUID(got.VM) || got.Adapter != "net0" || known && other != who {
			t.Errorf("%s: guest %s is %s (adapter %s), as is %s", node, who, got.VM, got.Adapter, other)
		}
		seen[got.VM] = who
	}
	if len(seen) != 3 {
		t.Errorf("three guests are %v", seen)
	}
}

func TestProxmox_WhatGoesWrongIsNamed(t *testing.T) {
	p := newProxmox(t, map[string]string{
		"qemu-server/9003.conf": "net0: virtio=BC:24:11:00:93:01,bridge=vmbr0\nnet1: " +
			"virtio=BC:24:11:00:93:02,bridge=vmbr1\nnet2: virtio=BC:24:11:00:93:03,bridge=vmbr1\n",
		"qemu-server/9004.conf": "net0: virtio=BC:24:11:00:94:01,bridge=vmbr7\n",
	}, "vmbr0 lab/nowhere\nvmbr1 web\n")
	p.mustHook("9004", "pre-start") // nothing of Heddle's: its guests start without an agent
	p.start("--config", p.file("heddle.yaml", hookSwitch))
	p.ip("tuntap add dev tap9003i0 mode tap")
	p.ip("tuntap add dev tap9003i2 mode tap")
	out, err := p.hook("9003", "post-start")
	if err == nil || !strings.Contains(out, "nowhere") || !strings.Contains(out, "no device tap9003i1") {
		t.Errorf("%v\n%s", err, out)
	}
	if got := p.port("9003/net2"); got.Device != "tap9003i2" {
		t.Errorf("one adapter's fault keeps another from its port: %+v", got)
	}
	for _, vmid := range []string{"9999", "../9003", ""} {
		if out, err := p.hook(vmid, "post-start"); err == nil {
			t.Errorf("guest %q: %s", vmid, out)
		}
	}
}

// guestUUID is that of a container whose configuration says one.
const guestUUID = "6f9619ff-8b86-d011-b42d-00c04fc96402"

func TestLXC_ScriptConventionsOfBothVersions(t *testing.T) {
	h := newHost(t)
	h.start("--config", h.file("heddle.yaml", hookSwitch))
	h.ip("link add lxcbr9 type bridge")
	h.guest("c1-eth0", "02:00:00:00:00:c1", "192.0.2.10/24")
	h.ip("link set c1-eth0 up master lxcbr9")
	v1 := func(phase string) []string {
		return []string{"LXC_NAME=c1", "LXC_HOOK_TYPE=" + phase, "LXC_HOOK_SECTION=net", "LXC_NET_TYPE=veth",
			"LXC_NET_PARENT=lxcbr9", "LXC_NET_PEER=c1-eth0"}
	}
	for _, c := range []struct {
		name     string
		up, down []string
		upEnv    []string
		downEnv  []string
	}{
		{"version 0", []string{"lab/web", "c1", "net", "up", "veth", "c1-eth0"},
			[]string{"lab/web", "c1", "net", "down", "veth", "c1-eth0"}, nil, nil},
		{"version 0 with a bridge", []string{"web", "c1", "net", "up", "veth", "lxcbr9", "c1-eth0"},
			[]string{"web", "c1", "net", "down", "veth", "lxcbr9", "c1-eth0"}, nil, nil},
		{"version 1", []string{"lab/web"}, []string{"lab/web"}, v1("up"), v1("down")},
		{"version 0 with a UUID", []string{"lab/web", "uuid=" + guestUUID, "c1", "net", "up", "veth", "c1-eth0"},
			[]string{"lab/web", "uuid=" + guestUUID, "c1", "net", "down", "veth", "c1-eth0"}, nil, nil},
		{"version 1 with a UUID", []string{"lab/web", "uuid=" + guestUUID}, []string{"lab/web", "uuid=" + guestUUID},
			v1("up"), v1("down")},
	} {
		t.Run(c.name, func(t *testing.T) {
			if out, err := h.script("lxc/heddle-veth", c.upEnv, c.up...); err != nil {
				t.Errorf("%s: up: %v\n%s", c.name, err, out)
				return
			}
			h.awaitPort("c1/c1-eth0", api.Up)
			if p := h.port("c1/c1-eth0"); p.PortGroup != "web" || p.Owner != "lxc/c1" || p.MAC != "02:00:00:00:00:c1" ||
				h.where("c1-eth0") != "" {
				t.Errorf("%s: %+v in %q", c.name, p, h.where("c1-eth0"))
			} else if !spec.ValidUUID(p.VM) || (p.VM == guestUUID) != strings.HasSuffix(c.name, "UUID") ||
				p.Adapter != "c1-eth0" {
				t.Errorf("%s: it is adapter %s of %s", c.name, p.Adapter, p.VM)
			}
			for range 2 {
				if out, err := h.script("lxc/heddle-veth", c.downEnv, c.down...); err != nil {
					t.Errorf("%s: down: %v\n%s", c.name, err, out)
				}
			}
			if out := h.must("port", "list"); strings.Contains(out, "c1-eth0") {
				t.Errorf("%s: left:\n%s", c.name, out)
			}
		})
	}
	for _, args := range [][]string{{}, {"lab/web"}, {"lab/web", "c1", "net", "up", "macvlan", "x"},
		{"lab/web", "c1", "net", "sideways", "veth", "c1-eth0"}, {"lab/nowhere", "c1", "net", "up", "veth",
			"c1-eth0"}} {
		if out, err := h.script("lxc/heddle-veth", nil, args...); err == nil || out == "" {
			t.Errorf("%v: %v %q", args, err, out)
		}
	}
}

// busyboxRoot is a root file system with busybox alone.
func busyboxRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, d := range []string{"bin", "proc", "sys", "dev", "etc", "tmp"} {
		if err := os.Mkdir(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(busybox)
	if err == nil {
		err = os.WriteFile(filepath.Join(root, "bin/busybox"), b, 0o755)
	}
	if err == nil {
		err = os.Symlink("busybox", filepath.Join(root, "bin/sh"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func TestLXC_ARealContainerIsConnectedAndDisconnected(t *testing.T) {
	h := newHost(t)
	testkit.Tool(t, "lxc-start", "lxc-stop", "busybox")
	h.start("--config", h.file("heddle.yaml", hookSwitch))
	b := h.guest("pb", "02:00:00:00:00:0b", "192.0.2.11/24")
	h.must("port", "connect", "b", "--port-group", "web", "--device", "pb")
	script, err := filepath.Abs("../../../packaging/lxc/heddle-veth")
	if err != nil {
		t.Fatal(err)
	}
	root := busyboxRoot(t)
	name, device := "c-"+h.name, fmt.Sprintf("hl%d", os.Getpid()%1000000)
	config := h.file("lxc.conf", strings.Join([]string{
		"lxc.uts.name = c1", "lxc.rootfs.path = dir:" + root, "lxc.apparmor.profile = unconfined",
		"lxc.net.0.type = veth", "lxc.net.0.name = eth0", "lxc.net.0.flags = up", "lxc.net.0.veth.pair = " + device,
		"lxc.net.0.hwaddr = 02:00:00:00:0d:01", "lxc.net.0.ipv4.address = 192.0.2.10/24",
		"lxc.net.0.script.up = " + script + " lab/web", "lxc.net.0.script.down = " + script + " lab/web", "",
	}, "\n"))
	cmd := exec.Command("lxc-start", "-P", t.TempDir(), "-n", name, "-f", config, "-F", "--", "/bin/sh", "-c",
		"while [ ! -e /tmp/end ]; do busybox sleep 0.1; done")
	cmd.Env = h.command().Env
	out := &logBuffer{}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, out, time.Second
	if err := h.ns.Start(cmd); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	port := name + "/" + device
	h.await("the container is connected", func() bool {
		_, _, status := h.heddle("port", "show", port)
		return status == 0
	})
	h.awaitPort(port, api.Up)
	if p := h.port(port); p.MAC != "02:00:00:00:0d:01" || p.PortGroup != "web" || !spec.ValidUUID(p.VM) ||
		p.Adapter != device {
		t.Errorf("port: %+v\n%s", p, out)
	}
	h.awaitPort("b", api.Up)
	if !pings(b, "192.0.2.10") {
		t.Errorf("the container is not reached\n%s", out)
	}
	if err := os.WriteFile(filepath.Join(root, "tmp/end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatalf("the container goes on\n%s", out)
	}
	h.await("the container is disconnected", func() bool {
		return !strings.Contains(h.must("port", "list", "-o", "json"), port)
	})
}
