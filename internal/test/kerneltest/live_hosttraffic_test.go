package kerneltest

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"heddle/internal/abi"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
)

// hostNumber and outsideNumber are the last octets of the addresses of the host and of a machine beyond its uplink.
const (
	hostNumber    = 200
	outsideNumber = 201
)

// hostAddresses gives the host 10.9.0.200 and fd00::200 on the device of uplink u1, the network beyond it .201, and
// says so to the kernel.
func (h *host) hostAddresses() (self, outside *machine) {
	h.t.Helper()
	self = &machine{end: &end{t: h.t, ns: h.ns}, number: hostNumber}
	outside = &machine{end: h.ends["u1"], number: outsideNumber}
	for m, device := range map[*machine]string{self: "dev1", outside: "eth0"} {
		h.in(m.ns, func() error { return m.addressesOn(device) })
	}
	h.hostTraffic(true)
	return self, outside
}

func (h *host) hostTraffic(on bool) {
	h.t.Helper()
	f := h.d.Facts[port("u1")]
	f.HostTraffic = on
	h.d.Facts[port("u1")] = f
	h.reapply()
}

// ping sends three echo requests, and says what went wrong.
func ping(from *netns.NS, to string) error {
	_, err := from.Output("ping", "-n", "-c", "3", "-i", "0.02", "-W", "60", to)
	return err
}

func TestS96_D24_TheHostReachesItsPortsFromAnUplinksAddresses(t *testing.T) {
	testkit.Tool(t, "ping")
	h := newHost(t, `
  uplinks: [{name: u1, device: dev1}]
  portGroups: [{name: web}]
`, "vm1 web", "vm2 web", "tap3 web")
	self, outside := h.hostAddresses()
	for name, m := range map[string]*machine{"vm1": h.machine("vm1", tapOffload), "tap3": h.machine("tap3", tapOffload),
		"outside": outside} {
		t.Run(name, func(t *testing.T) {
			for _, format := range []string{"10.9.0.%d", "fd00::%d"} {
				if err := ping(h.ns, fmt.Sprintf(format, m.number)); err != nil {
					t.Errorf("host to %s: %v", name, err)
				}
				if err := ping(m.ns, fmt.Sprintf(format, self.number)); err != nil {
					t.Errorf("%s to host: %v", name, err)
				}
			}
		})
	}
	if err := ping(h.machine("vm2", tapOffload).ns, fmt.Sprintf("10.9.0.%d", outside.number)); err != nil {
		t.Errorf("vm2 to outside: %v", err)
	}
	if c := h.counters()["u1"]; c.PacketsFromHostKept < 12 || c.PacketsFromHost < c.PacketsFromHostKept+12 ||
		c.PacketsFromHostDropped != 0 {
		t.Errorf("counters of the uplink: %+v", c)
	}
	vm := map[[6]byte]string{[6]byte(word("vm1")): "vm1", [6]byte(word("tap3")): "tap3"}
	for _, c := range h.drain("u1") { // what went between the host and its ports is nobody's business on the wire
		to, from := vm[[6]byte(c.frame)], vm[[6]byte(c.frame[6:])]
		if to != "" || from != "" && [6]byte(c.frame) == [6]byte(word("dev1")) {
			t.Errorf("the wire carries %x", c.frame)
		}
	}
}

func TestS96_HostAndPortsExchangeWholeSegmentedFrames(t *testing.T) {
	h := newHost(t, `
  uplinks: [{name: u1, device: dev1}]
  portGroups: [{name: web}]
`, "vm1 web", "tap3 web")
	self, outside := h.hostAddresses()
	vm, tap := h.machine("vm1", tapOffload), h.machine("tap3", tapOffload)
	for _, c := range []struct {
		what     string
		from, to *machine
		see      *machine // whose longest frame is looked at; nil: nobody's
	}{
		{"host to vm1", self, vm, vm}, {"vm1 to host", vm, self, nil}, {"host to tap3", self, tap, tap},
		{"tap3 to host", tap, self, nil},
		{"host to outside", self, outside, outside}, {"outside to host", outside, self, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			for _, format := range []string{"10.9.0.%d", "fd00::%d"} {
				if c.see != nil {
					c.see.forget()
				}
				if err := transfer(c.from, c.to, netip.MustParseAddr(fmt.Sprintf(format, c.to.number)),
					3<<20); err != nil {
					t.Fatalf("TCP %s by %s: %v", c.what, format, err)
				}
				if c.see != nil && c.see.longest() <= 1518 {
					t.Errorf("TCP %s: every frame was cut to the MTU", c.what)
				}
			}
		})
	}
}

// emitHost sends a frame by a raw socket of the host on the uplink's device, and gives what every owner received.
func (h *host) emitHost(frame string, mark int, want ...outcome) {
	h.t.Helper()
	e := expectation{copies: map[string][]byte{}, refused: map[string]string{}}
	for _, o := range want {
		o(&e, frame)
	}
	h.flush()
	before := h.counters()
	if err := unix.SetsockoptInt(h.ends["u1"].back, unix.SOL_SOCKET, unix.SO_MARK, mark); err != nil {
		h.t.Fatal(err)
	}
	onOneCPU(h.t, func() {
		if _, err := unix.Write(h.ends["u1"].back, wire(frame)); err != nil && err != unix.ENOBUFS {
			// that is a frame refused
			h.t.Fatal(err)
		}
	})
	got := map[string]string{}
	for name, list := range h.flush() {
		for _, c := range list {
			got[name] += fmt.Sprintf("%x ", c.frame)
		}
	}
	for name, f := range e.copies {
		if want := fmt.Sprintf("%x ", f); got[name] != want {
			h.t.Errorf("host sends %s: %s got %q, want %q", frame, name, got[name], want)
		}
		delete(got, name)
	}
	for name, f := range got {
		h.t.Errorf("host sends %s: %s got %s", frame, name, f)
	}
	for name, c := range h.counters() {
		for why, n := range c.Refused {
			if n != before[name].Refused[why] && e.refused[name] != why.String() {
				h.t.Errorf("host sends %s: %s refused it: %s", frame, name, why)
			}
		}
	}
}

func TestS96_D25_FramesOfTheHostGoWhereTheyBelong(t *testing.T) {
	h := newHost(t, `
  uplinks: [{name: u1, device: dev1, vlans: ["0", "10-20"]}, {name: u2, device: dev2}]
  portGroups:
  - {name: web}
  - {name: ten, vlan: {access: 10}}
  - {name: thirty, vlan: {access: 30}}
  - {name: trunk, vlan: {trunk: ["0-4094"]}}
  - {name: shut, blocked: true}
`, "vm1 web", "vm2 ten", "vm3 thirty", "vm4 trunk", "vm5 shut")
	h.hostTraffic(true)
	refuses := refused("vm5", "receiver-blocked")
	h.emitHost("vm1 dev1 0800", 0, to("vm1"))
	h.emitHost("ext1 dev1 0800", 0, to("u1"))
	h.emitHost("all dev1 0806", 0, to("u1 vm1 vm4"), refuses)
	h.emitHost("all dev1 q10 0806", 0, to("u1 vm4"), to("vm2", "all dev1 0806"))
	h.emitHost("vm2 dev1 q10 0800", 0, to("vm2", "vm2 dev1 0800"))
	h.emitHost("vm3 dev1 q30 0800", 0, to("u1")) // a VLAN that the uplink does not carry into the switch
	h.emitHost("vm5 dev1 0800", 0, refuses)
	h.emitHost("0180c200000e dev1 88cc", 0, to("u1"))
	h.emitHost("all ext1 0806", 0, to("u1")) // not the host's
	h.emitHost("all dev1 0806", abi.MarkAgent, to("u1"))
	if c := h.counters()["u1"]; c.PacketsFromHost != 6 || c.PacketsFromHostKept != 2 || c.PacketsFromHostDropped != 1 ||
		c.Received() != 0 {
		t.Errorf("counters of the uplink: %+v", c)
	}
	// What a port sends reaches the host once by the uplink with its addresses, and leaves by the port's own.
	fromU1 := h.passesOn("u1")
	h.emit("vm2", "all vm2 0806", to("u1 vm4", "all vm2 q10 0806"), to("host"))
	h.emit("vm2", "dev1 vm2 0800", to("host"))
	h.emit("vm3", "all vm3 0806", to("u2 vm4", "all vm3 q30 0806"))
	if n := fromU1(); n != 2 {
		t.Errorf("the host's stack was offered %d frames on u1, want 2", n)
	}
	if c := h.counters()["u1"]; c.Received() != 0 || c.PacketsToHost != 2 {
		t.Errorf("counters of the uplink: %+v", c)
	}
}

func TestS91_S96_TheHostsOwnBroadcastThatComesBackIsNotCopied(t *testing.T) {
	h := newHost(t, `
  uplinks: [{name: u1, device: dev1}, {name: u2, device: dev2}]
  portGroups: [{name: web, teaming: {policy: explicit, active: [u2]}}]
`, "vm1 web")
	h.hostTraffic(true)
	h.emitHost("all dev1 0806", 0, to("u1 vm1"))
	h.emit("u2", "all dev1 0806", to("host"), refused("vm1", "reflected"))
}

// A guest may send from the host's own address where its policy lets it forge: the copy that leaves by the uplink is no
// frame of the host's, and is not switched once more.
func TestS96_ACopyFromAPortIsNotTakenForTheHosts(t *testing.T) {
	h := newHost(t, `
  uplinks: [{name: u1, device: dev1}]
  portGroups: [{name: web, security: {forgedTransmits: accept}}]
`, "vm1 web", "tap3 web", "vm4 web")
	h.hostTraffic(true)
	for from, others := range map[string]string{"vm1": "tap3 vm4", "tap3": "vm1 vm4"} {
		t.Run(from, func(t *testing.T) {
			h.emit(from, "all dev1 0806", to(others+" u1"), to("host"))
			h.emit(from, "ext1 dev1 0800", to("u1"))
		})
	}
	if c := h.counters()["u1"]; c.PacketsFromHost != 0 {
		t.Errorf("%d frames were taken for the host's", c.PacketsFromHost)
	}
}

// egressLinks is how many programs look at what leaves by a device.
func (h *host) egressLinks(name string) (n int) {
	h.t.Helper()
	h.in(h.ns, func() error {
		there, err := link.QueryPrograms(link.QueryOptions{Target: h.ends[name].index, Attach: ebpf.AttachTCXEgress})
		if err == nil {
			n = len(there.Programs)
		}
		return err
	})
	return n
}

func TestS96_TheKernelGoesOnWithoutTheAgentAndTheNextOneAdopts(t *testing.T) {
	testkit.Tool(t, "ping")
	h := newHost(t, `
  uplinks: [{name: u1, device: dev1}]
  portGroups: [{name: web}]
`, "vm1 web")
	if n := h.egressLinks("u1"); n != 0 {
		t.Errorf("%d programs on the way out of an uplink without addresses", n)
	}
	h.hostAddresses()
	h.machine("vm1", tapOffload)
	check := func(when string) {
		t.Helper()
		if n := h.egressLinks("u1"); n != 1 {
			t.Errorf("%s: %d programs on the way out", when, n)
		}
		if err := ping(h.ns, "10.9.0.1"); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	check("attached")
	if err := h.k.Close(); err != nil {
		t.Fatal(err)
	}
	check("without an agent")
	h.open()
	check("adopted")
	h.reapply()
	check("applied again")
	f := h.d.Facts[port("u1")]
	h.hostTraffic(false)
	if n := h.egressLinks("u1"); n != 0 {
		t.Errorf("%d programs left when the addresses are gone", n)
	}
	h.d.Facts[port("u1")] = f
	h.reapply()
	check("back again")
}
