package dataplane

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"heddle/internal/binding"
	"heddle/internal/lab/netns"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/test/testkit"
)

// bpffs mounts a bpf file system that goes with the test.
func bpffs(t *testing.T) string {
	t.Helper()
	testkit.Root(t)
	dir := filepath.Join(t.TempDir(), "bpf")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("bpf", dir, "bpf", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { testkit.Unmount(t, dir) })
	return filepath.Join(dir, "test")
}

// guest is a namespace with one interface, whose other end is in the host namespace.
type guest struct {
	ns   *netns.NS
	mac  plan.MAC
	at   binding.Attachment
	addr string
}

func newGuest(t *testing.T, host *netns.NS, n int) guest {
	t.Helper()
	g := guest{ns: testkit.NS(t, fmt.Sprint("g", n)), mac: plan.MAC{2, 0, 0, 0, 0, byte(n)},
		addr: fmt.Sprintf("10.0.0.%d", n)}
	h, err := g.ns.Handle()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	err = host.Do(func() error {
		name := fmt.Sprint("port", n)
		attrs := netlink.NewLinkAttrs()
		attrs.Name = name
		v := &netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(h)),
			PeerHardwareAddr: g.mac[:]}
		if err := netlink.LinkAdd(v); err != nil {
			return err
		}
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		g.at = binding.Attachment{Ifindex: uint32(l.Attrs().Index), PeerRedirect: true}
		return netlink.LinkSetUp(l)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.ns.Do(func() error { return setUp("eth0", g.addr+"/24") }); err != nil {
		t.Fatal(err)
	}
	return g
}

func setUp(name, cidr string) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	addr, err := netlink.ParseAddr(cidr)
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(l, addr); err != nil {
		return err
	}
	return netlink.LinkSetUp(l)
}

func twoPorts(t *testing.T) (*netns.NS, []guest, binding.Desired) {
	t.Helper()
	host := testkit.NS(t, "host")
	guests := []guest{newGuest(t, host, 1), newGuest(t, host, 2)}
	sw := &plan.Switch{Name: "lab", Kind: spec.Distributed, MTU: 1500, ReversePath: true, ReversePathPromiscuous: true,
		BlockGuestBPDU: true}
	d := binding.Desired{Plan: &plan.Plan{Switches: []*plan.Switch{sw}}, Facts: plan.Facts{},
		Attachments: map[plan.PortID]binding.Attachment{}}
	for i, g := range guests {
		id := plan.PortID{Switch: "lab", Name: fmt.Sprint("vm", i+1)}
		p := &plan.Port{ID: id, Number: uint32(i + 1), InitialMAC: g.mac, Policy: &plan.Effective{}}
		p.Policy.VLAN.V = plan.VLAN{Mode: plan.VLANAccess, ID: 100}
		p.Policy.Teaming.Policy.V = spec.OriginatingPort
		p.Policy.Learning.LimitPolicy.V = spec.LimitDrop
		p.Policy.Learning.Ageing.V = 10 * time.Minute
		sw.Ports = append(sw.Ports, p)
		d.Facts[id] = plan.Fact{Up: true, MTU: 1500}
		d.Attachments[id] = g.at
	}
	return host, guests, d
}

func TestGuestsTalkAndKernelIsAdopted(t *testing.T) {
	testkit.Tool(t, "ping")
	dir := bpffs(t)
	host, guests, d := twoPorts(t)
	open := func() *Kernel {
		var k *Kernel
		if err := host.Do(func() (err error) {
			k, err = Open(Options{PinDir: dir})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return k
	}
	k := open()
	if err := host.Do(func() error { return k.Apply(d) }); err != nil {
		t.Fatal(err)
	}
	ping := func() {
		t.Helper()
		if _, err := guests[0].ns.Output("ping", "-c", "3", "-i", "0.05", "-W", "1", guests[1].addr); err != nil {
			t.Fatal(err)
		}
	}
	ping()
	before, err := k.Counters()
	if err != nil {
		t.Fatal(err)
	}
	vm1 := before[plan.PortID{Switch: "lab", Name: "vm1"}]
	if vm1.Received() != vm1.Delivered+vm1.Dropped() || vm1.Received() < 4 {
		t.Errorf("S94: received %d, delivered %d, dropped %v", vm1.Received(), vm1.Delivered, vm1.Drops)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	ping() // no process runs, the kernel forwards
	k = open()
	if err := host.Do(func() error { return k.Apply(d) }); err != nil {
		t.Fatal(err)
	}
	ping()
	after, err := k.Counters()
	if err != nil {
		t.Fatal(err)
	}
	if now := after[plan.PortID{Switch: "lab", Name: "vm1"}]; now.Received() < vm1.Received()+6 {
		t.Errorf("counters after adoption: %d frames, before it %d", now.Received(), vm1.Received())
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Remove(dir, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("pin directory after Remove: %v", err)
	}
	if _, err := guests[0].ns.Output("ping", "-c", "1", "-W", "1", guests[1].addr); err == nil {
		t.Error("guests still talk after Remove")
	}
}
