package qemu_test

import (
	"context"
	"encoding/json"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/capture/dissect"
	"heddle/internal/lab/qemu"
	"heddle/internal/test/testkit/cable"
)

// guardConfig: guest and twin share 192.0.2.100, as VRRP does; stranger may not use it.
const guardConfig = `
switches:
  - name: lab
    portGroups:
      - {name: servers}
      - {name: tenants, security: {addressGuard: {enabled: true}, dhcpServer: reject, routerAdvertisements: reject}}
ports:
  - {name: vm, switch: lab, portGroup: servers, device: vm, mac: "02:00:00:00:02:02"}
  - {name: guest, switch: lab, portGroup: tenants, device: guest, mac: "02:00:00:00:02:01",
     security: {addressGuard: {addresses: [192.0.2.1, "2001:db8::1", 192.0.2.100]}}}
  - {name: twin, switch: lab, portGroup: tenants, device: twin, mac: "02:00:00:00:02:03",
     security: {addressGuard: {addresses: [192.0.2.3, 192.0.2.100]}}}
  - {name: stranger, switch: lab, portGroup: tenants, device: stranger, mac: "02:00:00:00:02:04",
     security: {addressGuard: {addresses: [192.0.2.4]}}}
`

// guardGuest is a guest under an address guard, with namespaces beside it: vm is not guarded, and wire records what
// reaches it.
type guardGuest struct {
	*heddleHost
	guest
	vm, twin, stranger vm
	wire               *cable.End
}

func newGuardGuest(t *testing.T, ctx context.Context) *guardGuest {
	t.Helper()
	h := newHeddleHost(t, guardConfig)
	mac := func(n byte) net.HardwareAddr { return net.HardwareAddr{2, 0, 0, 0, 2, n} }
	g := &guardGuest{heddleHost: h, vm: vm{ns: h.namespaceVM(t, "vm", mac(2), "192.0.2.2/24", "2001:db8::2/64")},
		twin:     vm{ns: h.namespaceVM(t, "twin", mac(3), "192.0.2.3/24")},
		stranger: vm{ns: h.namespaceVM(t, "stranger", mac(4), "192.0.2.4/24")}}
	g.wire = cable.Open(t, g.vm.ns, "eth0")
	g.guest = start(t, ctx, qemu.Options{Name: "guest", NetNS: h.NS, Tap: "guest", MAC: mac(1)})
	if err := g.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	for _, port := range []string{"vm", "guest", "twin", "stranger"} {
		h.awaitPort(t, ctx, port, "up", func(p portView) bool { return p.State == "up" })
	}
	return g
}

func (g *guardGuest) do(t *testing.T, ctx context.Context, m machine, command string) string {
	t.Helper()
	out, err := m.run(ctx, command)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// comes waits until a frame with that description reaches vm, and returns everything that came until then.
func (g *guardGuest) comes(why, line string) (lines []string) {
	g.wire.Gather(why+": a frame with "+line, func(all [][]byte) bool {
		f := all[len(all)-1]
		lines = append(lines, dissect.Line(f, len(f)))
		return strings.Contains(lines[len(lines)-1], line)
	})
	return lines
}

// reaches makes a machine ping until three answers have come; source is the address from which it pings, "" for any.
func (g *guardGuest) reaches(t *testing.T, ctx context.Context, from machine, source, to string) {
	t.Helper()
	command := "ping -c 3 -w 60 " + to + " 2>&1; true"
	if source != "" {
		command = "ping -c 3 -w 60 -I " + source + " " + to + " 2>&1; true"
	}
	if out := g.do(t, ctx, from, command); !strings.Contains(out, " 3 received") &&
		!strings.Contains(out, " 3 packets received") {
		drops, _ := g.Output(ctx, "stats", "guest")
		t.Fatalf("%s is not reached from %q: %s\n%s", to, source, out, drops)
	}
}

// unanswered makes a machine ping twice, without an answer.
func (g *guardGuest) unanswered(t *testing.T, ctx context.Context, from machine, source, to string) {
	t.Helper()
	if out := g.do(t, ctx, from, "ping -c 2 -W 1 -I "+source+" "+to+" 2>&1; true"); !strings.Contains(out,
		" 0 packets received") && !strings.Contains(out, " 0 received") {
		t.Errorf("%s, which is not the port's, is answered: %s", source, out)
	}
}

// drops are the frames of the guest's port that were dropped, by reason.
func (g *guardGuest) drops(t *testing.T, ctx context.Context, port string) map[string]uint64 {
	t.Helper()
	out, err := g.Output(ctx, "stats", port, "-o", "json")
	var s api.Stats
	if err == nil {
		err = json.Unmarshal(out, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]uint64{}
	for _, d := range s.Drops {
		by[d.Reason] = d.Value
	}
	return by
}

// says runs a command of the program and fails unless its output contains these words.
func (g *guardGuest) says(t *testing.T, ctx context.Context, args []string, words ...string) {
	t.Helper()
	command := g.Command(args...)
	var out strings.Builder
	command.Stdout = &out
	if err := g.Launch(command); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // advise and trace exit with 1 if something is wrong
	for _, w := range words {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), w) {
			t.Errorf("heddle %s does not say %q:\n%s", strings.Join(args, " "), w, out.String())
		}
	}
}

// ownAddresses: everything that a guest does to get and use its own addresses passes.
func (g *guardGuest) ownAddresses(t *testing.T, ctx context.Context) {
	g.do(t, ctx, g.guest, "udhcpc -i eth0 -f -n -q -t 1 -T 1 -s /bin/true >/dev/null 2>&1; true")
	g.comes("a DHCP client without an address", "IPv4 0.0.0.0:68 > 255.255.255.255:67: UDP")
	g.do(t, ctx, g.guest, "arping -D -I eth0 -c 1 -w 1 192.0.2.1 >/dev/null 2>&1; true")
	g.comes("an ARP probe", "ARP who has 192.0.2.1, tell 0.0.0.0")
	g.do(t, ctx, g.guest, "ip addr add 192.0.2.1/24 dev eth0; echo 1 >/proc/sys/net/ipv6/conf/eth0/accept_dad; ip "+
		"link set eth0 down; ip link set eth0 up; "+
		"ip addr add 2001:db8::1/64 dev eth0")
	g.comes("duplicate address detection", "IPv6 :: > ff02::1:ff00:1: ICMPv6 neighbour solicitation, who has "+
		"2001:db8::1")
	g.do(t, ctx, g.guest, "n=0; while ip -6 addr show dev eth0 | grep -q tentative; do n=$((n+1)); [ $n -lt 15000 ] "+
		"|| exit 1; usleep 20000; done")
	g.reaches(t, ctx, g.guest, "", "192.0.2.2")
	g.reaches(t, ctx, g.guest, "", "2001:db8::2")
	g.reaches(t, ctx, g.vm, "", "192.0.2.1")
	g.do(t, ctx, g.vm, "ip neigh flush dev eth0")
	g.reaches(t, ctx, g.vm, "", "2001:db8::1")
	g.reaches(t, ctx, g.vm, "", "fe80::ff:fe00:201%eth0")
	if d := g.drops(t, ctx, "guest"); len(d) > 0 {
		t.Errorf("of a guest that uses its own addresses frames are dropped: %v", d)
	}
}

// foreignAddresses: what it sends from addresses that it adds itself is dropped, and every command says why.
func (g *guardGuest) foreignAddresses(t *testing.T, ctx context.Context) {
	g.wire.Forget()
	g.do(t, ctx, g.guest, "ip addr add 192.0.2.99/24 dev eth0; ip addr add 2001:db8::99/64 dev eth0 nodad "+
		"2>/dev/null || ip addr add 2001:db8::99/64 dev eth0")
	g.unanswered(t, ctx, g.guest, "192.0.2.99", "192.0.2.2")
	g.says(t, ctx, []string{"port", "show", "guest"}, "ip-source-not-allowed", "from 192.0.2.99")
	g.says(t, ctx, []string{"events", "--kind", "violation", "--port", "guest", "--last", "-1", "--no-follow"},
		"in the name of 192.0.2.99", "ip-source-not-allowed")
	g.says(t, ctx, []string{"advise"}, "address-guard: port guest", "the latest: 192.0.2.99",
		"192.0.2.99 is not one of the port's addresses",
		"addressGuard: {addresses: [192.0.2.1, 2001:db8::1, 192.0.2.100, 192.0.2.99]}")
	g.says(t, ctx, []string{"trace", "--from", "guest", "--to", "vm", "--ip", "192.0.2.99,192.0.2.2"},
		"ip-source-not-allowed", "192.0.2.99")
	g.do(t, ctx, g.guest, "ip neigh flush dev eth0")
	g.unanswered(t, ctx, g.guest, "192.0.2.99", "192.0.2.2")
	g.unanswered(t, ctx, g.guest, "2001:db8::99", "2001:db8::2")
	d := g.drops(t, ctx, "guest")
	if d["ip-source-not-allowed"] < 2 || d["arp-sender-not-allowed"] == 0 {
		t.Errorf("dropped: %v, want IP and ARP of the address that is not listed", d)
	}
	g.reaches(t, ctx, g.guest, "192.0.2.1", "192.0.2.2")
	came := g.comes("its own address after that", "IPv4 192.0.2.1 > 192.0.2.2: ICMP echo request")
	// Duplicate address detection for these addresses passes, because it claims nothing yet.
	if i := slices.IndexFunc(came, func(l string) bool {
		return strings.Contains(l, "tell 192.0.2.99") || strings.Contains(l, "192.0.2.99 is at") ||
			strings.Contains(l, "IPv4 192.0.2.99") || strings.Contains(l, "IPv6 2001:db8::99")
	}); i >= 0 {
		t.Errorf("it came to a neighbour: %s", came[i])
	}
}

// sharedAddress: an address listed at two ports can be used by either of them, and by nobody else.
func (g *guardGuest) sharedAddress(t *testing.T, ctx context.Context) {
	const add, del = "ip addr add 192.0.2.100/24 dev eth0", "ip addr del 192.0.2.100/24 dev eth0"
	held := func(by machine, mac string) {
		t.Helper()
		g.do(t, ctx, by, add+"; arping -U -I eth0 -c 2 192.0.2.100 >/dev/null 2>&1 || true")
		g.reaches(t, ctx, g.vm, "", "192.0.2.100")
		if out := g.do(t, ctx, g.vm, "ip neigh show 192.0.2.100"); !strings.Contains(out, mac) {
			t.Errorf("192.0.2.100 is not at %s: %s", mac, out)
		}
		g.do(t, ctx, by, del)
		g.do(t, ctx, g.vm, "ip neigh del 192.0.2.100 dev eth0")
	}
	held(g.guest, "02:00:00:00:02:01")
	held(g.twin, "02:00:00:00:02:03")
	held(g.guest, "02:00:00:00:02:01")
	g.do(t, ctx, g.stranger, add)
	g.unanswered(t, ctx, g.stranger, "192.0.2.100", "192.0.2.2")
	if out := g.do(t, ctx, g.vm, "ping -c 2 -W 1 192.0.2.100 2>&1; true"); !strings.Contains(out, " 0 received") {
		t.Errorf("the address answers from a port where it is not listed: %s", out)
	}
	g.says(t, ctx, []string{"advise"}, "address-guard: port stranger", "it is listed at port guest")
}

// TestS86_S108_ARealGuestUnderAnAddressGuard: Linux with its own ARP, DHCP client and neighbour discovery.
func TestS86_S108_ARealGuestUnderAnAddressGuard(t *testing.T) {
	needGuests(t, qemu.VirtioNet)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	g := newGuardGuest(t, ctx)
	t.Run("its own addresses", func(t *testing.T) { g.ownAddresses(t, ctx) })
	t.Run("addresses that it adds", func(t *testing.T) { g.foreignAddresses(t, ctx) })
	t.Run("an address listed at two ports", func(t *testing.T) { g.sharedAddress(t, ctx) })
}
