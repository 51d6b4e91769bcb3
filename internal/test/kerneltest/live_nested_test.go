package kerneltest

import (
	"fmt"
	"maps"
	"net"
	"testing"

	"github.com/vishvananda/netlink"

	"heddle/internal/abi"
	"heddle/internal/binding"
	"heddle/internal/flow"
	"heddle/internal/observe"
	"heddle/internal/plan"
)

// knows tells the kernel the MAC of an address for good, so that it asks nobody.
func knows(device string, number int, mac string) error {
	l, err := netlink.LinkByName(device)
	if err != nil {
		return err
	}
	hardware := plan.MAC(word(mac))
	return netlink.NeighSet(&netlink.Neigh{LinkIndex: l.Attrs().Index, IP: net.IPv4(10, 9, 0, byte(number)),
		HardwareAddr: hardware[:], State: netlink.NUD_PERMANENT})
}

// tunnelTo makes a tunnel of the host's own to the machine beyond its uplink; it is the named port's device.
func (h *host) tunnelTo(name string) {
	h.t.Helper()
	h.in(h.ns, func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = "tun9"
		err := netlink.LinkAdd(&netlink.Vxlan{LinkAttrs: attrs, VxlanId: 9, Port: 4789,
			SrcAddr: net.IPv4(10, 9, 0, hostNumber), Group: net.IPv4(10, 9, 0, outsideNumber)})
		if err != nil {
			return err
		}
		l, err := netlink.LinkByName("tun9")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(l); err != nil {
			return err
		}
		h.d.Attachments[port(name)] = binding.Attachment{Ifindex: uint32(l.Attrs().Index)}
		return knows("dev1", outsideNumber, "ext99")
	})
	h.in(h.ends["u1"].ns, func() error { return knows("eth0", hostNumber, "dev1") })
	h.reapply()
}

// nestedHost has guests vm1, vm2 and vm3. What is sent to vm2 goes out through a tunnel, and the outer frame leaves by
// an uplink that the host uses: on the same CPU, the program of outgoing frames looks that one up while the other
// program has more receivers to serve.
func nestedHost(t *testing.T, monitoring string) *host {
	t.Helper()
	h := newHost(t, `
  uplinks: [{name: u1, device: dev1, monitoring: {ipfix: false}}]
  portGroups: [{name: web, monitoring: {ipfix: `+monitoring+`}}]
`, "vm1 web", "vm2 web", "vm3 web")
	h.address(h.ns, "dev1", fmt.Sprintf("10.9.0.%d/24", hostNumber))
	h.address(h.ends["u1"].ns, "eth0", fmt.Sprintf("10.9.0.%d/24", outsideNumber))
	h.hostTraffic(true)
	h.tunnelTo("vm2")
	h.flush()
	return h
}

// nest has vm1 send a frame to all, and returns the counters before and after, and what was received.
func (h *host) nest(frame []byte) (before, now map[string]observe.Counters, got map[string][]captured) {
	h.t.Helper()
	before = h.counters()
	onOneCPU(h.t, func() {
		if err := h.ends["vm1"].inject(frame); err != nil {
			h.t.Fatal(err)
		}
	})
	h.await("the frame is switched", func() bool { return h.received("vm1") > received(before, "vm1") })
	got, now = h.flush(), h.counters()
	if now["u1"].PacketsFromHost == before["u1"].PacketsFromHost {
		h.t.Fatal("the tunnel's frame was not looked up as the host's own: no run was within another")
	}
	return before, now, got
}

// Each run has its own facts.
func TestARunWithinAnotherKeepsToItsOwnFrame(t *testing.T) {
	h := nestedHost(t, "false")
	frame := wire("all vm1 88b6 [46]")
	before, now, got := h.nest(frame)
	if n := len(got["vm3"]); n != 1 || string(got["vm3"][0].frame) != string(frame) {
		t.Errorf("vm3 received %v", got["vm3"])
	}
	for _, name := range []string{"vm2", "vm3", "u1"} {
		for class := range before[name].PacketsOut {
			want := uint64(0)
			if class == int(abi.ClassBroadcast) {
				want = 1
			}
			if n := now[name].PacketsOut[class] - before[name].PacketsOut[class]; n != want {
				t.Errorf("%s was sent %d frames of class %d, want %d", name, n, class, want)
			}
		}
	}
	if n := now["vm1"].Delivered - before["vm1"].Delivered; n != 1 {
		t.Errorf("%d frames of vm1 delivered", n)
	}
}

// What the outer run meters is its own frame, also after the run within has read another one.
func TestARunWithinAnotherMetersItsOwnFrame(t *testing.T) {
	h := nestedHost(t, "true")
	h.nest(wire("all vm1 88b6 [46]"))
	metered := map[string]uint64{}
	err := h.k.Flows().Drain(func(b flow.Batch) error {
		for i, k := range b.Keys {
			metered[flowText(h.k.Flows().Points(), k)] += b.Counts[i].FrameBytes
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]uint64{}
	for _, at := range []string{"in vm1", "out vm2", "out vm3"} {
		want[at+" 01>ff:ff:ff:ff:ff:ff type 88b6"] = 60
	}
	if !maps.Equal(metered, want) {
		t.Errorf("metered is\n%v, want\n%v", metered, want)
	}
}
