package kerneltest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
)

// kinds checks what the stack of each receiver took the frame for.
func (h *host) kinds(got map[string]captured, want map[string]uint8) {
	h.t.Helper()
	names := map[uint8]string{unix.PACKET_HOST: "its own", unix.PACKET_OTHERHOST: "not for it",
		unix.PACKET_BROADCAST: "broadcast", unix.PACKET_MULTICAST: "multicast"}
	for name, kind := range want {
		if got[name].kind != kind {
			h.t.Errorf("%s takes the frame for %q, want %q", name, names[got[name].kind], names[kind])
		}
	}
}

func TestS95_D4_OnlyTheReceiverAddressedTakesTheFrameForItsOwn(t *testing.T) {
	h := newHost(t, `
  defaults: {security: {forgedTransmits: accept}}
  portGroups:
  - {name: web}
  - {name: sniff, security: {promiscuous: accept}}
  - {name: learn, security: {macLearning: {enabled: true}}}
`, "vm1 web", "vm2 web", "vm3 sniff", "vm4 learn", "vm5 learn")
	const own, other = unix.PACKET_HOST, unix.PACKET_OTHERHOST
	h.kinds(h.emit("vm1", "vm2 vm1 0800", to("vm2 vm3")), map[string]uint8{"vm2": own, "vm3": other})
	h.emit("vm4", "vm1 nest1 0800", to("vm1 vm3"))
	h.kinds(h.emit("vm1", "nest1 vm1 0800", to("vm4 vm3")), map[string]uint8{"vm4": own, "vm3": other}) // learned there
	h.kinds(h.emit("vm1", "ext1 vm1 0800", to("vm3 vm4 vm5")), map[string]uint8{"vm3": other, "vm4": other,
		"vm5": other})
	broadcast, multicast := uint8(unix.PACKET_BROADCAST), uint8(unix.PACKET_MULTICAST)
	h.kinds(h.emit("vm1", "all vm1 0806", to("vm2 vm3 vm4 vm5")),
		map[string]uint8{"vm2": broadcast, "vm3": broadcast, "vm4": broadcast, "vm5": broadcast})
	h.kinds(h.emit("vm1", "333300000001 vm1 86dd", to("vm2 vm3 vm4 vm5")),
		map[string]uint8{"vm2": multicast, "vm3": multicast, "vm4": multicast, "vm5": multicast})
}

func (h *host) transmitted(name string) (n uint64) {
	h.t.Helper()
	h.in(h.ns, func() error {
		l, err := netlink.LinkByIndex(h.ends[name].index)
		if err == nil {
			n = l.Attrs().Statistics.TxPackets
		}
		return err
	})
	return n
}

func TestS95_D4_TheCopyForTheAddressedGuestTakesNoDetour(t *testing.T) {
	h := newHost(t, "  portGroups: [{name: web}]", "vm1 web", "vm2 web")
	before := h.transmitted("vm2")
	h.emit("vm1", "vm2 vm1 0800", to("vm2"))
	if n := h.transmitted("vm2") - before - 1; n != 0 { // one is the test's own marker
		t.Errorf("vm2's device at the host transmitted %d frames: the frame did not go to the guest's end directly", n)
	}
	at := h.d.Attachments[port("vm2")]
	at.PeerRedirect = false // as for a host interface, whose other end is in the same namespace
	h.d.Attachments[port("vm2")] = at
	h.reapply()
	before = h.transmitted("vm2")
	h.kinds(h.emit("vm1", "vm2 vm1 0800", to("vm2")), map[string]uint8{"vm2": unix.PACKET_HOST})
	if n := h.transmitted("vm2") - before - 1; n != 1 {
		t.Errorf("vm2's device at the host transmitted %d frames, want 1", n)
	}
}

// address gives a device of a namespace an IPv4 address.
func (h *host) address(ns *netns.NS, device, cidr string) {
	h.t.Helper()
	h.in(ns, func() error {
		l, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		addr, err := netlink.ParseAddr(cidr)
		if err != nil {
			return err
		}
		return netlink.AddrAdd(l, addr)
	})
}

// echoRequests is how many pings the stack of a namespace has received.
func (h *host) echoRequests(ns *netns.NS) (n int) {
	h.t.Helper()
	h.in(ns, func() error {
		text, err := os.ReadFile("/proc/thread-self/net/snmp")
		if err != nil {
			return err
		}
		var names []string
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if f[0] == "Icmp:" && names != nil {
				for i, name := range names {
					if name == "InEchos" {
						_, err = fmt.Sscan(f[i], &n)
					}
				}
			} else if f[0] == "Icmp:" {
				names = f
			}
		}
		return err
	})
	return n
}

func TestS6_D1_AStackThatAskedForNothingIgnoresThePromiscuousCopy(t *testing.T) {
	h := newHost(t, `
  portGroups:
  - {name: web}
  - {name: sniff, security: {promiscuous: accept}}
`, "vm1 web", "vm2 web", "vm3 sniff")
	guest := h.ends["vm3"].ns
	h.address(guest, "eth0", "10.9.0.3/24")
	h.in(guest, func() error { // it counts pings and does not answer
		return os.WriteFile("/proc/sys/net/ipv4/icmp_echo_ignore_all", []byte("1"), 0)
	})
	// A ping from 10.9.0.1 to 10.9.0.3.
	const ping = " vm1 0800 4500001c00000000400166cc 0a090001 0a090003 0800f7ff00000000 [0]"
	h.emit("vm1", "vm2"+ping, to("vm2 vm3"))
	h.emit("vm1", "ext1"+ping, to("vm3")) // the only receiver
	if n := h.echoRequests(guest); n != 0 {
		t.Errorf("vm3's stack took %d pings that were sent to other MACs", n)
	}
	h.emit("vm1", "vm3"+ping, to("vm3"))
	h.await("vm3's stack takes the ping sent to its own MAC", func() bool { return h.echoRequests(guest) == 1 })
}

func TestS96_TheHostsOwnTrafficOnAnUplinkGoesOn(t *testing.T) {
	testkit.Tool(t, "ping")
	h := newHost(t, `
  uplinks: [{name: u1, device: dev1}]
  portGroups: [{name: sniff, security: {promiscuous: accept, macLearning: {enabled: true}}}]
`, "vm1 sniff", "vm2 sniff")
	network := h.ends["u1"].ns
	h.address(h.ns, "dev1", "10.9.1.1/24")
	h.address(network, "eth0", "10.9.1.2/24")
	ping := func(when string) {
		t.Helper()
		before := h.counters()["u1"].PacketsToHost
		for from, to := range map[*netns.NS]string{network: "10.9.1.1", h.ns: "10.9.1.2"} {
			if _, err := from.Output("ping", "-n", "-c", "3", "-i", "0.02", "-W", "60", to); err != nil {
				t.Errorf("%s: %v", when, err)
			}
		}
		if n := h.counters()["u1"].PacketsToHost - before; n < 6 {
			t.Errorf("%s: %d frames counted as the host's", when, n)
		}
	}
	ping("in use")
	h.edit("device: dev1", `device: dev1, vlans: ["20-30"]`)
	ping("with an uplink range that leaves untagged frames out")
	h.edit("device: dev1", "device: dev1, blocked: true")
	ping("with a blocked uplink")
	for name, list := range h.flush() { // neither ARP nor ping of the host and its network, but broadcasts
		for _, c := range list {
			if name != "u1" && [6]byte(c.frame) != [6]byte(word("all")) {
				t.Errorf("%s got %x", name, c.frame)
			}
		}
	}
}

// passesOn attaches a program after the switch's own on a device and counts the frames that get there: those that the
// switch leaves to the host's stack.
func (h *host) passesOn(name string) func() uint64 {
	h.t.Helper()
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		h.t.Fatal(err)
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "Apache-2.0",
		Instructions: asm.Instructions{
			asm.StoreImm(asm.RFP, -4, 0, asm.Word),
			asm.LoadMapPtr(asm.R1, m.FD()),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, -4),
			asm.FnMapLookupElem.Call(),
			asm.JEq.Imm(asm.R0, 0, "out"),
			asm.Mov.Imm(asm.R1, 1),
			asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
			asm.Mov.Imm(asm.R0, -1).WithSymbol("out"),
			asm.Return(),
		}})
	if err != nil {
		h.t.Fatal(err)
	}
	var l link.Link
	h.in(h.ns, func() (err error) {
		l, err = link.AttachTCX(link.TCXOptions{Interface: h.ends[name].index, Program: prog,
			Attach: ebpf.AttachTCXIngress, Anchor: link.Tail()})
		return err
	})
	h.t.Cleanup(func() {
		for _, c := range []interface{ Close() error }{l, prog, m} {
			if err := c.Close(); err != nil {
				h.t.Error(err)
			}
		}
	})
	return func() (n uint64) {
		if err := m.Lookup(uint32(0), &n); err != nil {
			h.t.Error(err)
		}
		return n
	}
}

// A verdict that tcx does not know means "next", which lets the frame into the host's stack, and dry runs hide it.
func TestS94_S96_NothingOfAGuestReachesTheHostsStack(t *testing.T) {
	h := newHost(t, `
  uplinks: [{name: u1, device: dev1}]
  portGroups: [{name: web}, {name: sniff, security: {promiscuous: accept}}, {name: shut, blocked: true}]
`, "vm1 web", "vm2 web", "tap3 web", "vm4 sniff", "vm5 shut")
	h.address(h.ns, "lo", "10.9.3.1/32")
	fromVM, fromTap, fromShut, fromUplink := h.passesOn("vm1"), h.passesOn("tap3"), h.passesOn("vm5"), h.passesOn("u1")
	const who = " 0806 0001080006040001 %s 00000000 000000000000 0a090301 [18]" // who has the host's address?
	refuses := refused("vm5", "receiver-blocked")
	for _, at := range []string{"vm1", "tap3"} {
		others := map[string]string{"vm1": "vm2 tap3 vm4 u1", "tap3": "vm1 vm2 vm4 u1"}[at]
		h.emit(at, "all "+at+fmt.Sprintf(who, at), to(others), refuses)
		h.emit(at, "02ff00000000 "+at+fmt.Sprintf(who, at), to("vm4 u1"))
		h.emit(at, "vm2 "+at+" 0800", to("vm2 vm4"))
		h.emit(at, "vm5 "+at+" 0800", to("vm4"), refuses)
		h.emit(at, "0180c2000000 "+at+" 0026", dropped("guest-bpdu"))
		h.emit(at, "all "+at+" q9 0806", dropped("guest-tagged"))
		h.emit(at, "all nest1 0806", dropped("forged-transmit"))
		h.emit(at, "all 010000000001 0806", dropped("source-group"))
		h.emit(at, "all "+at+" q0 q1 0800 [1]", dropped("malformed"))
		h.emit(at, at+" "+at+" 0800", dropped("own-destination"))
	}
	h.emit("vm5", "all vm5"+fmt.Sprintf(who, "vm5"), dropped("port-blocked"))
	if a, b, c := fromVM(), fromTap(), fromShut(); a != 0 || b != 0 || c != 0 {
		t.Errorf("the host's stack was offered %d frames of vm1, %d of tap3, %d of vm5", a, b, c)
	}
	h.emit("u1", "vm1 ext1 0800", to("vm1 vm4"))
	h.emit("u1", "ext2 ext1 0800", to("vm4"))
	h.emit("u1", "ext2 ext1 q9 0800", dropped("unknown-unicast"))
	if n := fromUplink(); n != 0 {
		t.Errorf("the host's stack was offered %d frames of the uplink that are not its own", n)
	}
	h.emit("u1", "all ext1"+fmt.Sprintf(who, "ext1"), to("vm1 vm2 tap3 vm4 host"), refuses,
		to("u1", "ext1 dev1 0806 0001080006040002 dev1 0a090301 ext1 00000000 [0]")) // it answers
	h.emit("u1", "dev1 ext1 q7 0800", to("host"))
	if n := fromUplink(); n != 2 {
		t.Errorf("the host's stack was offered %d frames of the uplink, want 2", n)
	}
}
