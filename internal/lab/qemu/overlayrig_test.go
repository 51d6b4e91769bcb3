package qemu_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"heddle/internal/lab/netns"
	"heddle/internal/lab/qemu"
	"heddle/internal/lab/qemu/image"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// overlayText is a host with a tunnel and one port, behind which others may be.
const overlayText = `
switches:
- name: lab
  mtu: 1500
  tunnel:
    endpoints: [{address: "%s"}]
    peers: [{name: other, address: "%s"}, {name: third, address: "%s"}]
  portGroups:
  - {name: web, overlay: {vni: 5000}, security: {forgedTransmits: accept, macLearning: {enabled: true}}}
ports:
- {name: %[4]s, switch: lab, portGroup: web, device: %[4]s, mac: "02:00:00:00:05:%02[5]x"}
`

// overlayRig is a host with an emulated guest, a host with a namespace for a VM, and a machine with the kernel's own
// VXLAN device, each with a network of its own at one router.
type overlayRig struct {
	t      *testing.T
	ctx    context.Context
	router vm
	host   []*heddleHost
	far    vm // the VM of the second host, 192.0.2.2 and 2001:db8::2
	third  vm // the third machine, .3
	guest  guest
	inner  nested // .11, behind a bridge in the guest, which is .1
	seen   underlay
}

// nested is a guest within a guest.
type nested struct{ guest }

func (n nested) run(ctx context.Context, command string) (string, error) {
	quoted := strings.ReplaceAll(command, "'", `'\''`)
	return n.guest.run(ctx, "nsenter -t $(cat /run/nested) -n sh -c '"+quoted+"'")
}

func (n nested) serve(t *testing.T, ctx context.Context) {
	if _, err := n.run(ctx, exchangePath+" serve "+port+" >/dev/null 2>&1 &"); err != nil {
		t.Fatal(err)
	}
}

// nest puts the guest's card into a bridge, and a guest of its own behind that: a network namespace.
const nest = `set -e
ip addr flush dev eth0
ip link add br0 type bridge
ip link set br0 address 02:00:00:00:05:a0
ip link set eth0 master br0
ip link add v0 type veth
other=$(ls /sys/class/net | grep veth)
ip link set v0 master br0
unshare -n sleep 100000 >/dev/null 2>&1 &
echo $! >/run/nested
n=0
until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do
	n=$((n+1)); [ $n -lt 3000 ]; usleep 20000
done
ip link set $other netns $!
ip link set v0 up
echo 0 >/proc/sys/net/ipv6/conf/br0/accept_dad
ip link set br0 up
ip addr add 192.0.2.1/24 dev br0
ip addr add 2001:db8::1/64 dev br0
inside="nsenter -t $! -n"
$inside ip link set lo up
$inside ip link set $other name eth0
$inside ip link set eth0 address 02:00:00:00:05:a1
echo 0 | $inside tee /proc/sys/net/ipv6/conf/eth0/accept_dad >/dev/null
$inside ip link set eth0 up
$inside ip addr add 192.0.2.11/24 dev eth0
$inside ip addr add 2001:db8::11/64 dev eth0
`

func newOverlayRig(t *testing.T, ctx context.Context, card qemu.NIC) *overlayRig {
	t.Helper()
	testkit.Tool(t, "ip", "tshark")
	program := buildExchange(t)
	r := &overlayRig{t: t, ctx: ctx, router: vm{testkit.NS(t, "router"), program}, third: vm{testkit.NS(t, "third"),
		program}}
	r.do(r.router, "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1")
	spaces := []*netns.NS{testkit.NS(t, "host0"), testkit.NS(t, "host1"), r.third.ns}
	for i, ns := range spaces {
		r.connect(i, ns)
	}
	r.tunnels(4)
	for i, ns := range spaces[:2] {
		r.host = append(r.host, newHeddleHostIn(t, ns, r.text(i, 4)))
	}
	r.far = vm{r.host[1].namespaceVM(t, "far", net.HardwareAddr{2, 0, 0, 0, 5, 2}, "192.0.2.2/24",
		"2001:db8::2/64"), program}
	img, err := image.Build(ctx, image.Options{Flavour: image.Full, Log: t.Logf})
	if err != nil {
		testkit.Missing(t, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	r.guest = start(t, ctx, qemu.Options{Name: "offload-" + string(card), NetNS: spaces[0], Tap: "near", NIC: card,
		MAC: net.HardwareAddr{2, 0, 0, 0, 5, 1}, Addrs: []string{"192.0.2.1/24", "2001:db8::1/64"}, Image: img,
		Modules: []string{"veth", "bridge"}, Files: map[string]string{exchangePath: program}})
	r.inner = nested{r.guest}
	if err := r.guest.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	for _, m := range []machine{r.guest, r.far, r.third} {
		m.serve(t, ctx)
	}
	r.host[0].awaitPort(t, ctx, "near", "up", func(p portView) bool { return p.State == "up" })
	r.host[1].awaitPort(t, ctx, "far", "up", func(p portView) bool { return p.State == "up" })
	r.seen.watch(t, r.router.ns)
	return r
}

func (r *overlayRig) do(m machine, command string) {
	r.t.Helper()
	if _, err := m.run(r.ctx, command); err != nil {
		r.t.Fatal(err)
	}
}

// endpoint is the address of a machine's endpoint.
func endpoint(machine, family int) string {
	if family == 6 {
		return fmt.Sprintf("fd09:%d::2", machine)
	}
	return fmt.Sprintf("10.9.%d.2", machine)
}

// connect gives a machine its cable to the router, with addresses of both families.
func (r *overlayRig) connect(i int, ns *netns.NS) {
	r.t.Helper()
	r.do(r.router, fmt.Sprintf("ip link add r%d type veth peer name u0 netns %s && ip link set r%[1]d mtu 1600 up && "+
		"ip addr add 10.9.%[1]d.1/24 dev r%[1]d && ip addr add fd09:%[1]d::1/64 dev r%[1]d nodad", i, ns.Name))
	r.do(vm{ns, ""}, fmt.Sprintf("ip link set lo up && ip link set u0 mtu 1600 up && ip addr add %s/24 dev u0 && "+
		"ip addr add %s/64 dev u0 nodad && ip route add default via 10.9.%d.1 && "+
		"ip route add default via fd09:%[3]d::1",
		endpoint(i, 4), endpoint(i, 6), i))
}

func (r *overlayRig) text(i, family int) string {
	return fmt.Sprintf(overlayText, endpoint(i, family), endpoint(1-i, family), endpoint(2, family),
		[]string{"near", "far"}[i], i+1)
}

// tunnels makes the third machine's VXLAN device over that family.
func (r *overlayRig) tunnels(family int) {
	r.t.Helper()
	r.do(r.third, fmt.Sprintf("ip link del vx 2>/dev/null; ip link add vx address 02:00:00:00:05:03 type vxlan "+
		"id 5000 dstport 4789 local %s && bridge fdb append 00:00:00:00:00:00 dev vx dst %s && "+
		"bridge fdb append 00:00:00:00:00:00 dev vx dst %s && "+
		"ip link set vx mtu 1500 up && ip addr add 192.0.2.3/24 dev vx && ip addr add 2001:db8::3/64 dev vx nodad",
		endpoint(2, family), endpoint(0, family), endpoint(1, family)))
}

// over has all tunnels go over that family.
func (r *overlayRig) over(family int) {
	r.t.Helper()
	for i, h := range r.host {
		h.Configure(r.text(i, family))
	}
	r.tunnels(family)
}

// underlay is what the router has received.
type underlay struct {
	mu     sync.Mutex
	frames [][]byte
}

// watch keeps what comes to the router, until the test ends.
func (u *underlay) watch(t *testing.T, router *netns.NS) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range 3 {
		e := cable.Open(t, router, fmt.Sprintf("r%d", i))
		all.Go(func() {
			if err := e.Watch(ctx, u.take); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		all.Wait()
	})
}

func (u *underlay) take(frame []byte) {
	u.mu.Lock()
	u.frames = append(u.frames, frame)
	u.mu.Unlock()
}

// end is what has come since it was last asked for.
func (u *underlay) end() [][]byte {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := u.frames
	u.frames = nil
	return all
}
