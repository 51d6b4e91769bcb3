package kerneltest

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"heddle/internal/abi"
)

// Copies of large frames carry other tags than the frame itself and go to devices with other abilities; none of that
// may show in the frame.
func TestCopiesOfOffloadedFramesAreWholeAndRight(t *testing.T) {
	const mtu = 1500
	h := newHost(t, `
  uplinks: [{name: u1, device: dev1}]
  portGroups:
  - {name: web, vlan: {access: 10}}
  - {name: sniff, vlan: {access: 10}, security: {promiscuous: accept}}
  - {name: sniff-trunk, vlan: {trunk: ["10"]}, security: {promiscuous: accept}}
`, "vm1 web, txUplink: true", "vm2 web", "tap3 web", "vm4 sniff", "tap5 sniff", "vm6 sniff-trunk", "tap7 sniff-trunk")
	m := map[string]*machine{"u1": {end: h.ends["u1"]}}
	for name, offload := range map[string]int{
		"vm1": tapOffload, "vm2": tapOffload, "tap3": tapOffload, "vm4": tapOffload, "tap5": tapNoOffload,
		"vm6": tapOffload, "tap7": tapOffload,
	} {
		t.Run(name, func(t *testing.T) {
			m[name] = h.machine(name, offload)
		})
	}
	for _, pair := range [][2]string{{"vm1", "vm2"}, {"vm1", "tap3"}, {"tap3", "vm2"}} {
		watchers := []string{"vm4", "vm6", "tap7"}
		if pair[0] == "vm1" {
			watchers = append(watchers, "u1")
		}
		for _, w := range append(watchers, "tap5") {
			m[w].forget()
		}
		if err := transfer(m[pair[0]], m[pair[1]], netip.AddrFrom4([4]byte{10, 9, 0, byte(m[pair[1]].number)}),
			2<<20); err != nil {
			t.Fatalf("%s to %s: %v", pair[0], pair[1], err)
		}
		for _, w := range watchers {
			if n := m[w].longest(); n <= mtu+18 {
				t.Errorf("%s to %s: the longest copy %s received has %d bytes", pair[0], pair[1], w, n)
			}
		}
		if n := m["tap5"].longest(); n > mtu+18 || n < mtu {
			t.Errorf("%s to %s: the longest copy tap5 received has %d bytes", pair[0], pair[1], n)
		}
	}
}

func TestS94_D17_OfSegmentedFramesTheSegmentsCountForTheMTU(t *testing.T) {
	h := newHost(t, "  mtu: 9000\n  portGroups: [{name: web}]", "vm1 web", "vm2 web") // vm2's device: 1500
	vm1, vm2 := h.machine("vm1", tapOffload), h.machine("vm2", tapOffload)
	h.jumbo("vm1", h.ends["vm1"])
	h.in(vm1.ns, func() error { // a path to vm2 that claims more than it can do
		l, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		return netlink.NeighAdd(&netlink.Neigh{LinkIndex: l.Attrs().Index, IP: net.IPv4(10, 9, 0, 2),
			HardwareAddr: word("vm2"), State: netlink.NUD_PERMANENT})
	})
	var server, client *net.UDPConn
	h.in(vm2.ns, func() (err error) {
		server, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(10, 9, 0, 2)})
		return err
	})
	defer server.Close()
	h.in(vm1.ns, func() (err error) {
		client, err = net.DialUDP("udp", nil, server.LocalAddr().(*net.UDPAddr))
		return err
	})
	defer client.Close()
	data := make([]byte, 10*1473)
	for _, size := range []uint16{1473, 1472} { // 1501 and 1500 bytes of layer 3
		if _, _, err := client.WriteMsgUDP(data[:10*int(size)], segmentSize(size), nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 { // of the second frame alone
		if err := expectDatagram(server, data[:1472]); err != nil {
			t.Fatalf("datagram %d: %v", i, err)
		}
	}
	if n := h.counters()["vm2"].Refused[abi.ReasonMTUExceeded]; n != 1 {
		t.Errorf("%d copies refused, want the one of longer segments", n)
	}
}

// The kernel's clock ticks in jiffies, whose length the agent finds out.
func TestS17_S91_S92_S93_TimeOnRealDevices(t *testing.T) {
	h := newHost(t, `
  uplinks: [{name: u1, device: dev1}]
  defaults: {security: {forgedTransmits: accept, macLearning: {ageing: 6s, unicastFlooding: false}}}
  portGroups: [{name: learn, security: {macLearning: {enabled: true}}}, {name: sniff, security: {promiscuous: accept}}]
`, "vm1 learn", "vm2 learn", "vm3 sniff")
	idle := func(more time.Duration) {
		t.Helper()
		h.await("the learned MAC is idle", func() bool {
			macs, err := h.k.MACs()
			if err != nil {
				t.Fatal(err)
			}
			return len(macs) == 1 && macs[0].Idle > more.Seconds()
		})
	}
	for deadline := time.Now().Add(patience); ; {
		sent := time.Now()
		h.emit("vm1", "all nest1 0806", to("vm2 vm3 u1"))
		lines, _ := h.carry("u1", wire("ext1 nest1 0800"))
		if time.Since(sent) > shortCase && time.Now().Before(deadline) {
			continue // a busy machine: the frame came back too late
		}
		if len(lines) != 2 || lines[0] != "dropped: reflected" || lines[1] != "vm3 refused: reflected" {
			t.Errorf("our own frame come back: %q", lines)
		}
		break
	}
	idle(time.Second)
	h.emit("vm2", "nest1 vm2 0800", to("vm1 vm3"))
	h.emit("u1", "vm1 ext1 0800", to("vm1 vm3"))
	idle(6 * time.Second)
	h.emit("vm2", "nest1 vm2 0800", to("vm3 u1")) // expired, and nobody has swept
	h.emit("vm1", "all nest1 0806", to("vm2 vm3 u1"))
	h.emit("vm2", "nest1 vm2 0800", to("vm1 vm3"))
	idle(1100 * time.Millisecond)
	h.emit("u1", "all nest1 0806", to("vm1 vm2 vm3 host")) // silent here for a second, and heard outside
	h.emit("vm2", "nest1 vm2 0800", to("vm3 u1"))
	if macs, err := h.k.MACs(); err != nil || len(macs) != 0 {
		t.Errorf("still learned: %v, %v", macs, err)
	}
}
