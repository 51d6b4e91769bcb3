package kerneltest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"heddle/internal/binding"
	"heddle/internal/dataplane"
	"heddle/internal/lab/netns"
	"heddle/internal/observe/accounts"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/test/testkit"
)

// host is a network namespace whose kernel runs a switch on real devices. A port called vm… is a veth whose other end
// is in a guest's namespace, one called tap… a tap; an uplink is a veth whose other end stands for the physical
// network.
type host struct {
	t    *testing.T
	ns   *netns.NS
	dir  string
	text string
	k    *dataplane.Kernel
	d    binding.Desired
	ends map[string]*end
}

// newHost makes the devices a configuration names, as newRig reads it, and puts it in force on them.
func newHost(t *testing.T, text string, ports ...string) *host {
	t.Helper()
	h := bareHost(t, text, ports...)
	h.start()
	return h
}

// bareHost has no devices yet.
func bareHost(t *testing.T, text string, ports ...string) *host {
	t.Helper()
	h := &host{t: t, ns: quietNS(t, "host"), dir: bpffs(t), text: configText(text, ports), ends: map[string]*end{}}
	t.Cleanup(h.close)
	return h
}

// start makes the devices that are missing and puts the configuration in force.
func (h *host) start() {
	h.t.Helper()
	p := h.plan()
	for _, sw := range p.Switches {
		for _, u := range sw.Uplinks {
			if h.ends[u.ID.Name] == nil {
				h.ends[u.ID.Name] = h.plugVeth(u.Device, plan.MAC(word(u.Device)), plan.MAC(word("ext99")))
			}
		}
		for _, port := range sw.Ports {
			if strings.HasPrefix(port.ID.Name, "tap") {
				h.ends[port.ID.Name] = h.plugTap(port.Device)
			} else {
				h.ends[port.ID.Name] = h.plugVeth(port.Device, plan.MAC{2, 0xff, 0, 0, 0, byte(len(h.ends))},
					port.InitialMAC)
			}
		}
	}
	h.open()
	h.inForce(p)
}

// quietNS is a namespace that sends nothing by itself.
func quietNS(t *testing.T, hint string) *netns.NS {
	t.Helper()
	ns := testkit.NS(t, hint)
	err := ns.Do(func() error {
		err := os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // no IPv6 here
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

func bpffs(t *testing.T) string {
	t.Helper()
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

// port is the id of a port or uplink of switch s.
func port(name string) plan.PortID { return plan.PortID{Switch: "s", Name: name} }

func (h *host) plan() *plan.Plan {
	h.t.Helper()
	cfg, err := spec.Parse("test.yaml", []byte(h.text))
	if err != nil {
		h.t.Fatal(err)
	}
	p, err := plan.Resolve(cfg, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

// plugVeth makes a veth: its host end is named and has the first MAC, its other end is eth0 in a namespace of its own.
func (h *host) plugVeth(name string, mac, owner plan.MAC) *end {
	h.t.Helper()
	e := &end{t: h.t, ns: quietNS(h.t, name)}
	handle, err := e.ns.Handle()
	if err != nil {
		h.t.Fatal(err)
	}
	defer handle.Close()
	h.in(h.ns, func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.HardwareAddr = name, mac[:]
		v := &netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(handle)),
			PeerHardwareAddr: owner[:]}
		if err := netlink.LinkAdd(v); err != nil {
			return err
		}
		return e.hostSide(name)
	})
	h.in(e.ns, func() error {
		l, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(l); err != nil {
			return err
		}
		e.sock, err = packetSocket(l.Attrs().Index)
		return err
	})
	h.inUse(h.ns, name)
	h.inUse(e.ns, "eth0")
	return e
}

// inUse waits until the kernel has noticed that a device has carrier: until then it drops what the device is to send.
func (h *host) inUse(ns *netns.NS, name string) {
	h.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); ; <-tick.C {
		var state netlink.LinkOperState
		h.in(ns, func() error {
			l, err := netlink.LinkByName(name)
			if err == nil {
				state = l.Attrs().OperState
			}
			return err
		})
		if state == netlink.OperUp {
			return
		}
		if time.Now().After(end) {
			h.t.Fatalf("device %s is %s for a minute", name, state)
		}
	}
}

// plugTap makes a tap whose owner is the test itself.
func (h *host) plugTap(name string) *end {
	h.t.Helper()
	e := &end{t: h.t, tap: true}
	h.in(h.ns, func() (err error) {
		if e.sock, err = openTap(name); err != nil {
			return err
		}
		return e.hostSide(name)
	})
	return e
}

// in runs f in a namespace.
func (h *host) in(ns *netns.NS, f func() error) {
	h.t.Helper()
	if err := ns.Do(f); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) open() {
	h.t.Helper()
	h.in(h.ns, func() (err error) {
		h.k, err = dataplane.Open(dataplane.Options{PinDir: h.dir})
		return err
	})
}

// inForce applies a plan with every device there and up.
func (h *host) inForce(p *plan.Plan) {
	h.t.Helper()
	h.d = binding.Desired{Plan: p, Facts: plan.Facts{}, Attachments: map[plan.PortID]binding.Attachment{}}
	for _, sw := range p.Switches {
		for _, u := range sw.Uplinks {
			h.d.Facts[u.ID] = plan.Fact{Up: true, MTU: 1500, DeviceMAC: plan.MAC(word(u.Device))}
			h.d.Attachments[u.ID] = binding.Attachment{Ifindex: uint32(h.ends[u.ID.Name].index)}
		}
		for _, port := range sw.Ports {
			e := h.ends[port.ID.Name]
			h.d.Facts[port.ID] = plan.Fact{Up: true, MTU: 1500, SeenMAC: port.InitialMAC}
			h.d.Attachments[port.ID] = binding.Attachment{Ifindex: uint32(e.index), PeerRedirect: !e.tap}
		}
	}
	h.reapply()
}

func (h *host) reapply() {
	h.t.Helper()
	h.in(h.ns, func() error { return h.k.Apply(h.d) })
}

// edit replaces a piece of the configuration, which must be in it exactly once, and puts the result in force.
func (h *host) edit(from, to string) {
	h.t.Helper()
	if n := strings.Count(h.text, from); n != 1 {
		h.t.Fatalf("%q is %d times in the configuration", from, n)
	}
	h.text = strings.Replace(h.text, from, to, 1)
	h.inForce(h.plan())
}

// settled waits until no frame is on its way, and then checks the books of every port against the accounting invariant
// (S94), to the frame.
func (h *host) settled() {
	h.t.Helper()
	if h.k == nil || h.t.Failed() {
		return
	}
	reader := h.k.CounterReader()
	var ids []plan.PortID
	for id := range h.d.Facts {
		if reader.Has(id) {
			ids = append(ids, id)
		}
	}
	for deadline := time.Now().Add(patience); ; {
		all, err := accounts.Check(context.Background(), reader, ids)
		if err != nil {
			h.t.Error(err)
			return
		}
		i := slices.IndexFunc(all, func(a accounts.Account) bool { return a.State != accounts.Exact })
		if i < 0 {
			return
		}
		if all[i].State == accounts.Broken || time.Now().After(deadline) {
			h.t.Errorf("the accounts do not come out: %+v", all[i])
			return
		}
	}
}

func (h *host) close() {
	h.settled()
	for _, e := range h.ends {
		e.close()
	}
	var err error
	if h.k != nil {
		err = h.k.Close()
	}
	if err := errors.Join(err, h.ns.Do(func() error { return dataplane.Remove(h.dir, nil) })); err != nil {
		h.t.Error(err)
	}
}
