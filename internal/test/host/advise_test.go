package host

import (
	"encoding/binary"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/diagnose/advise"
	"heddle/internal/observe/event"
	"heddle/internal/test/guardcases"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// badlySet has a fault for every rule of advise: what each port is for says adviseFaults.
const badlySet = `switches:
- name: lab
  kind: distributed
  checks: {reversePath: false}
  uplinks: [{name: u1, device: u1, vlans: ["0-29"]}, {name: u2, device: u2, vlans: ["0-29"]}]
  portGroups:
  - {name: web, vlan: {access: 10}}
  - {name: pinned, vlan: {access: 10}, teaming: {active: [u1]}}
  - {name: nested, vlan: {access: 11}, security: {forgedTransmits: accept, macLearning: {enabled: true, limit: 1}}}
  - {name: crowded, vlan: {access: 11}, security: {forgedTransmits: accept, macLearning: {enabled: true, limit: 10}}}
  - {name: bridges, vlan: {access: 12}, security: {forgedTransmits: accept, macLearning: {enabled: true}}}
  - {name: far, vlan: {access: 30}}
  - {name: astray, vlan: {access: 13}}
  - {name: watch, vlan: {access: 10}, security: {forgedTransmits: accept, promiscuous: accept}}
- name: hash
  kind: distributed
  uplinks: [{name: h1, device: h1}, {name: h2, device: h2}]
  portGroups:
  - {name: hashed, teaming: {policy: ip-hash}}
- name: works
  uplinks: [{name: x1, device: x1, drained: true}]
  portGroups:
  - {name: idle}
- name: half
  kind: distributed
  uplinks: [{name: o1, device: o1}]
  portGroups:
  - {name: out}
- name: teams
  kind: distributed
  uplinks: [{name: m1, device: m1}, {name: m2, device: m2}]
  portGroups:
  - {name: both}
  - {name: lonely, teaming: {active: [m2]}}
- name: bundle
  kind: distributed
  uplinks: [{name: l1, device: l1}, {name: l2, device: l2}]
  lags: [{name: lag1, uplinks: [l1, l2], fallback: none}]
  portGroups:
  - {name: bundled, teaming: {active: [lag1]}}
- name: wide
  kind: distributed
  uplinks: [{name: w1, device: w1}, {name: w2, device: w2}]
  lags: [{name: lag2, uplinks: [w1, w2]}]
  portGroups:
  - {name: spread, vlan: {access: 40}, teaming: {active: [lag2]}}
- name: choices
  kind: distributed
  checks: {reversePathPromiscuous: false}
  uplinks: [{name: c1, device: c1}, {name: c2, device: c2}]
  portGroups:
  - {name: unheard, security: {macLearning: {enabled: true}}}
  - {name: greedy, security: {promiscuous: accept, forgedTransmits: accept, macLearning: {enabled: true}}}
- name: busy
  kind: distributed
  uplinks: [{name: b1, device: b1}]
  portGroups:
  - {name: bulk}
- name: guards
  kind: distributed
  portGroups:
  - {name: guarded, security: {addressGuard: {enabled: true}}}
  - {name: clients, security: {dhcpServer: reject, routerAdvertisements: reject}}
- name: storms
  portGroups:
  - {name: loud}
  - {name: held, stormControl: {broadcast: 100}}
- name: flows
  ipfix: {maxFlows: 1000, collectors: [{address: 203.0.113.9, port: 4739}]}
  portGroups:
  - {name: metered, monitoring: {ipfix: true}}
ports:
- {name: full, switch: lab, portGroup: web, device: p-full, mac: "02:00:00:00:00:01"}
- {name: a, switch: lab, portGroup: web, device: p-a, mac: "02:00:00:00:00:0a"}
- {name: b, switch: lab, portGroup: web, device: p-b, mac: "02:00:00:00:00:0b"}
- {name: small, switch: lab, portGroup: web, device: p-small, mac: "02:00:00:00:00:0c"}
- {name: other, switch: lab, portGroup: web, device: p-other, mac: "02:00:00:00:00:0e"}
- {name: barred, switch: lab, portGroup: web, device: p-barred, mac: "02:00:00:00:00:0f", blocked: true}
- {name: absent, switch: lab, portGroup: web, device: p-absent, mac: "02:00:00:00:00:10"}
- {name: alone, switch: lab, portGroup: pinned, device: p-alone, mac: "02:00:00:00:00:11"}
- {name: nest, switch: lab, portGroup: nested, device: p-nest, mac: "02:00:00:00:00:12"}
- {name: crowd, switch: lab, portGroup: crowded, device: p-crowd, mac: "02:00:00:00:00:13"}
- {name: left, switch: lab, portGroup: bridges, device: p-left, mac: "02:00:00:00:00:14"}
- {name: right, switch: lab, portGroup: bridges, device: p-right, mac: "02:00:00:00:00:15"}
- {name: remote, switch: lab, portGroup: far, device: p-remote, mac: "02:00:00:00:00:16"}
- {name: lost, switch: lab, portGroup: astray, device: p-lost, mac: "02:00:00:00:00:2a"}
- {name: watcher, switch: lab, portGroup: watch, device: p-watcher, mac: "02:00:00:00:00:17"}
- {name: hasher, switch: hash, portGroup: hashed, device: p-hasher, mac: "02:00:00:00:00:18"}
- {name: talker, switch: half, portGroup: out, device: p-talker, mac: "02:00:00:00:00:19"}
- {name: twofold, switch: teams, portGroup: both, device: p-twofold, mac: "02:00:00:00:00:1a"}
- {name: cutoff, switch: teams, portGroup: lonely, device: p-cutoff, mac: "02:00:00:00:00:1b"}
- {name: member, switch: bundle, portGroup: bundled, device: p-member, mac: "02:00:00:00:00:1c"}
- {name: scans, switch: flows, portGroup: metered, device: p-scans, mac: "02:00:00:00:00:1d"}
- {name: scanned, switch: flows, portGroup: metered, device: p-scanned, mac: "02:00:00:00:00:1e"}
- {name: poser, switch: guards, portGroup: guarded, device: p-poser, mac: "02:00:00:00:00:22", security: {addressGuard: {addresses: [192.0.2.10, "2001:db8::10"]}}}
- {name: serves, switch: guards, portGroup: clients, device: p-serves, mac: "02:00:00:00:00:23"}
- {name: flooder, switch: storms, portGroup: loud, device: p-flooder, mac: "02:00:00:00:00:24"}
- {name: limited, switch: storms, portGroup: held, device: p-limited, mac: "02:00:00:00:00:25"}
- {name: spreads, switch: wide, portGroup: spread, device: p-spreads, mac: "02:00:00:00:00:26"}
- {name: deaf, switch: choices, portGroup: unheard, device: p-deaf, mac: "02:00:00:00:00:27"}
- {name: eager, switch: choices, portGroup: greedy, device: p-eager, mac: "02:00:00:00:00:28"}
- {name: plain, switch: busy, portGroup: bulk, device: plaintap, mac: "02:00:00:00:00:29"}
- {name: rounda, switch: lab, portGroup: bridges, device: rounda, mac: "02:00:00:00:00:1f"}
- {name: roundb, switch: lab, portGroup: bridges, device: roundb, mac: "02:00:00:00:00:20"}
`

// silentTap is an uplink that accepts frames until its short queue is full, and sends nothing.
func (h *host) silentTap(name string) {
	h.t.Helper()
	var fd int
	err := h.ns.Do(func() (err error) {
		if fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0); err != nil {
			return err
		}
		req, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		return unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = unix.Close(fd) })
	h.ip("link set " + name + " txqueuelen 4 addrgenmode none up")
}

// refuses has the device refuse what the switch hands it.
func (h *host) refuses(device string) {
	h.t.Helper()
	const drop = 2 // TCX_DROP
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "full", Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, drop), asm.Return()}})
	if err != nil {
		h.t.Fatal(err)
	}
	defer p.Close()
	err = h.ns.Do(func() error {
		d, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		l, err := link.AttachTCX(link.TCXOptions{Interface: d.Attrs().Index, Program: p, Attach: ebpf.AttachTCXEgress,
			Anchor: link.Head()})
		if err == nil {
			h.t.Cleanup(func() { _ = l.Close() })
		}
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// neighbourFrame is an LLDPDU of a switch whose port takes frames of that many bytes and is a member of VLANs.
func neighbourFrame(longest uint16, vlans ...uint16) []byte {
	f := []byte{0x01, 0x80, 0xc2, 0, 0, 0x0e, 2, 0, 0, 0, 1, 0, 0x88, 0xcc}
	tlv := func(kind uint16, value ...byte) {
		f = append(binary.BigEndian.AppendUint16(f, kind<<9|uint16(len(value))), value...)
	}
	tlv(1, 4, 2, 0, 0, 0, 1, 0)                                 // chassis: a MAC
	tlv(2, append([]byte{5}, "eth7"...)...)                     // port: an interface's name
	tlv(3, 0, 120)                                              // time to live
	tlv(5, []byte("tor1")...)                                   // system name
	tlv(127, 0, 0x12, 0x0f, 4, byte(longest>>8), byte(longest)) // IEEE 802.3: maximum frame size
	for _, v := range vlans {
		tlv(127, 0x00, 0x80, 0xc2, 3, byte(v>>8), byte(v), 2, 'v', 'm') // IEEE 802.1: VLAN name
	}
	tlv(0)
	return append(f, make([]byte, max(0, 60-len(f)))...)
}

// scan begins more flows than the agent keeps of the switch: datagrams to as many ports (RFC 768, RFC 791).
func (l *adviceLab) scan() {
	const flows = 1500
	for port := range uint16(flows) {
		f := make([]byte, 60)
		copy(f,
			"\x02\x00\x00\x00\x00\x1e\x02\x00\x00\x00\x00\x1d\x08\x00\x45\x00\x00\x1c\x00\x00"+
				"\x00\x00\x40\x11\x00\x00\xc0\x00\x02\x1d\xc0\x00\x02\x1e")
		binary.BigEndian.PutUint16(f[34:], 5000)
		binary.BigEndian.PutUint16(f[36:], 1+port)
		binary.BigEndian.PutUint16(f[38:], 8)
		l.ends["scans"].Send(f)
	}
}

// misbehave sends what the rules look for, on the lab of badlySet.
func (l *adviceLab) misbehave() {
	long := strings.Repeat("x", 1500)
	l.ends["h1"].Send(neighbourFrame(1500))
	l.ends["w1"].Send(neighbourFrame(9216, 10, 20))
	l.ends["h1"].Send(lacpdu(1))
	for i := range byte(20) {
		l.ends["a"].Send(cable.Frame(mac(0xb), mac(0xa), 0, "to b"))
		l.broadcast("a", 0xa, 0)
		l.broadcast("talker", 0x19, 0)
		l.broadcast("lost", 0x2a, 0)
		if i < 9 {
			l.broadcast("crowd", 0x40+i, 0)
		}
	}
	l.ends["a"].Send(cable.Frame(mac(0xb), mac(0x99), 0, "forged"))
	l.ends["a"].Send(cable.Frame(mac(0xb), mac(0xa), 10, "tagged"))
	l.ends["a"].Send(cable.Frame([6]byte{1, 0x80, 0xc2, 0, 0, 0}, mac(0xa), 0, "spanning tree"))
	l.ends["a"].Send(cable.Frame([6]byte{1, 0x80, 0xc2, 0, 0, 14}, mac(0xa), 0, "link control"))
	l.ends["a"].Send(cable.Frame(mac(0xc), mac(0xa), 0, long))
	l.ends["watcher"].Send(cable.Frame(mac(0xa), mac(0x17), 0, "it sends"))
	l.broadcast("barred", 0xf, 0)
	l.broadcast("remote", 0x16, 0)
	l.broadcast("cutoff", 0x1b, 0)
	for range 2 {
		l.broadcast("left", 0x50, 0)
		l.broadcast("right", 0x50, 0)
	}
	for i := range byte(3) {
		l.broadcast("nest", 0x60+i, 0)
	}
	for _, u := range []string{"u1", "u2"} {
		l.ends[u].Send(cable.Frame(cable.Broadcast(), mac(0xf0), 10, "from outside"))
	}
	l.poses("poser", 0x22, slices.Concat(guardcases.Sources(), guardcases.Neighbours()))
	l.poses("serves", 0x23, guardcases.Servers())
	back := l.broadcast("hasher", 0x18, 0)
	for _, u := range []string{"h1", "h2"} {
		l.ends[u].Send(back)
	}
}

// poses sends one frame for each reason that a guard has against any of these.
func (l *adviceLab) poses(from string, source byte, cases []guardcases.Case) {
	sent := map[string]bool{"": true}
	for _, c := range cases {
		if !sent[c.Reason] {
			own := mac(source)
			copy(c.Frame[6:], own[:])
			l.ends[from].Send(c.Frame)
			sent[c.Reason] = true
		}
	}
}

// adviseFaults says where each rule has to find its fault.
func adviseFaults() map[string]string {
	return map[string]string{
		"promiscuous": "port watcher", "forged-transmits": "port a", "guest-tags": "port a", "guest-bpdu": "port a",
		"blocked-sender": "port barred",
		"mac-limit":      "port nest", "mac-table": "port crowd", "mac-twice": "port right", "mac-change": "port other",
		"reflection-check": "switch lab", "uplink-vlan": "port group far", "ip-hash": "port group hashed",
		"half-open": "uplink o1", "lacp-without-lag": "uplink h1", "no-uplink": "port group lonely",
		"team-degraded": "port group both", "single-uplink": "port group pinned", "lag-member": "uplink l1",
		"lag-degraded": "switch wide", "learning-forged": "port group unheard", "learning-promiscuous": "port eager",
		"promiscuous-uplinks": "switch choices", "guest-offloads": "port plain", "single-queue": "uplink b1",
		"uplink-drained": "uplink x1", "wrong-vlan": "port lost", "neighbour-vlan": "port group spread",
		"mtu": "port small", "neighbour-mtu": "uplink h1", "device-missing": "port absent",
		"device-losses": "uplink o1", "device-refused": "port full",
		"flow-room": "switch flows", "flow-collector": "switch flows",
		"guest-overdue": "port late", "guest-link-control": "port a", "loop": "port roundb", "flood": "port flooder",
		"program-before": "port alone",
		"past-switch":    "uplink l1",
		"address-guard":  "port poser", "guest-dhcp-server": "port serves", "guest-router": "port serves",
	}
}

// storm floods by two ports until the test ends, in steps, because what counts is the rate: at most 2,000 frames a
// second each.
func (l *adviceLab) storm() {
	done, ended := make(chan struct{}), make(chan struct{})
	l.t.Cleanup(func() { close(done); <-ended })
	go func() {
		defer close(ended)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				for range 10 {
					l.broadcast("flooder", 0x24, 0)
					l.broadcast("limited", 0x25, 0)
				}
			}
		}
	}()
}

// isHeld reports whether the port that storm control limits is named as such, beside the one that nothing limits.
func isHeld(floods []api.Finding) bool {
	return slices.ContainsFunc(floods, func(f api.Finding) bool {
		return f.Object() == "port limited" && strings.Contains(f.Sign, "storm control (broadcast 100/s) holds it")
	})
}

// late connects a port for a guest that should have arrived two minutes ago according to the agent's state.
func (l *adviceLab) late() {
	l.t.Helper()
	const address = "02:00:00:00:00:21"
	l.wire("p-late", address)
	l.must("port", "connect", "late", "--incoming", "--switch", "lab", "--port-group", "far", "--device", "p-late",
		"--mac", address)
	l.kill(unix.SIGTERM)
	store, err := state.Open(filepath.Join(l.dir, "state", l.name))
	if err != nil {
		l.t.Fatal(err)
	}
	s, err := store.Load()
	if err != nil || len(s.Waits) != 1 {
		l.t.Fatalf("%v: %d waits", err, len(s.Waits))
	}
	s.Waits[0].Since = s.Waits[0].Since.Add(-2 * time.Minute)
	if err := store.Save(s); err != nil {
		l.t.Fatal(err)
	}
	l.start("--config", filepath.Join(l.dir, "heddle.yaml"))
	l.awaitEvent(event.Overdue, "late", "its guest is to arrive by a migration: who connected it says so; nothing "+
		"has come from it for 2m")
}

// TestAdvise_EveryRuleFindsItsFaultOnALiveHost: all faults at once, by real frames.
func TestAdvise_EveryRuleFindsItsFaultOnALiveHost(t *testing.T) {
	testkit.Long(t, "makes the fault of every rule; TestAdvise_AfterTheRemedyTheWindowIsSilent has some")
	l := newAdviceLab(t)
	l.plug(badlySet, "u1", "u2", "h1", "h2", "m1", "m2", "l1", "l2", "w1", "w2", "c1", "c2", "x1")
	l.silentTap("o1")
	l.oneQueueOfTwo("b1")
	plain := l.plainGuest("plaintap")
	run(t, l.far, "ip link set f-w2 down")
	run(t, l.far, "ip link set f-eager promisc on")
	run(t, l.far, "ip link set f-watcher promisc on")
	run(t, l.far, "ip link set f-small mtu 1400")
	run(t, l.far, "ip link set f-m2 down")
	l.start("--config", l.file("heddle.yaml", badlySet))
	l.late()
	for _, p := range []string{"a", "b", "small", "watcher", "hasher", "talker", "member"} {
		l.awaitPort(p, api.Up)
	}
	l.refuses("p-full")
	run(t, l.ns, "ip link add rounda type veth peer name roundb") // between two ports, when the switch runs already
	run(t, l.ns, "ip link set rounda up")
	run(t, l.ns, "ip link set roundb up")
	l.thief("p-alone", "p-other")
	run(t, l.ns, "ip link add link l1 name beside type macvlan mode bridge")
	for _, command := range []string{"block", "unblock"} { // they look what runs before the switch
		l.must("port", command, "alone")
	}
	l.storm()
	l.bulk(plain)
	var by map[string][]api.Finding
	missing := func() (list []string) {
		for rule, object := range adviseFaults() {
			if !slices.ContainsFunc(by[rule], func(f api.Finding) bool { return f.Object() == object }) {
				list = append(list, rule+" on "+object)
			}
		}
		return list
	}
	defer func() {
		if t.Failed() {
			t.Logf("missing: %q\n%s", missing(), func() string { out, _, _ := l.heddle("advise"); return out }())
		}
	}()
	l.await("every rule finds its fault", func() bool {
		if slices.Contains(missing(), "flow-room on switch flows") {
			l.scan()
		}
		l.misbehave()
		by, _ = l.advise()
		return len(missing()) == 0 && isHeld(by["flood"])
	})
	if sign := by["address-guard"][0].Sign; !strings.Contains(sign,
		"the latest: 198.51.100.16; 198.51.100.16 is not one of the port's addresses: 192.0.2.10, 2001:db8::10") {
		t.Errorf("the address guard's finding does not name the address and those of the port: %s", sign)
	}
	// mac-flaps is what controllers say of several hosts (TestS100_AMACThatFlapsBetweenHostsIsNamed), no-controller is
	// about hosts that have some (TestS115_AHostWithoutItsClusterIsNeverWell), and storm and stp are about what a
	// physical switch sends all the time (TestS169_AStormOutsideIsAProblem,
	// TestS172_APhysicalPortThatDoesNotForwardIsAProblem). What a neighbour says by LLDP or CDP of our MACs
	// (mac-outside), and what a tunnel lacks of other hosts (tunnel-endpoint, tunnel-peers, tunnel-mtu), has cases in
	// package advise, as has a disk that is full or can't be written (state-directory,
	// TestS127_S128_S186_NoCommandSaysThatAllIsWellOnAHostThatIsNot).
	if elsewhere := 9; len(adviseFaults())+elsewhere != len(advise.Rules()) {
		t.Errorf("%d faults for %d rules", len(adviseFaults()), len(advise.Rules()))
	}
	out, _, status := l.heddle("advise")
	if status != 1 {
		t.Errorf("status %d", status)
	}
	adviceReads(t, out)
}

// adviceReads checks what is printed: no line but a command or an edit is longer than a terminal.
func adviceReads(t *testing.T, out string) {
	t.Helper()
	after := ""
	for line := range strings.Lines(out) {
		whole := strings.HasPrefix(line, "  command:") || strings.HasPrefix(line, "  edit:") ||
			strings.HasPrefix(after, "  edit:")
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 100 && !whole {
			t.Errorf("a line of %d columns: %s", n, line)
		}
		after = line
	}
	if strings.Contains(out, "\x1b") || strings.Contains(out, "%!") {
		t.Errorf("escapes or bad formats in\n%s", out)
	}
}
