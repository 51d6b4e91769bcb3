package host

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
)

// neighbour connects a guest with an address to the network's port group.
func (n *network) neighbour(address string) *netns.NS {
	n.t.Helper()
	ns := n.guest("nb0", "02:00:00:00:0e:01", address)
	n.must("port", "connect", "nb/eth0", "--port-group", "web", "--device", "nb0", "--mac", "02:00:00:00:0e:01")
	n.awaitPort("nb/eth0", api.Up)
	return ns
}

// background starts a program in a namespace; it ends with the test.
func background(t *testing.T, ns *netns.NS, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	if err := ns.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// An IPAM plugin that needs the network itself gets its address by it: the port passes frames before it is asked.
func TestCNI_AddressesByDHCP(t *testing.T) {
	if _, err := os.Stat("/usr/lib/cni/dhcp"); err != nil {
		testkit.Missing(t, "program /usr/lib/cni/dhcp (Debian: containernetworking-plugins)")
	}
	n := newNetwork(t, "1.0.0", "")
	server := n.neighbour("192.0.2.20/24")
	leases := filepath.Join(t.TempDir(), "leases")
	background(t, server, "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--interface=eth0",
		"--bind-interfaces", "--dhcp-range=192.0.2.200,192.0.2.220,5m", "--dhcp-leasefile="+leases, "--pid-file=",
		"--user=root")
	socket := filepath.Join(shortDir(t), "dhcp.sock")
	background(t, n.ns, "/usr/lib/cni/dhcp", "daemon", "-socketpath", socket)
	n.await("the DHCP plugin's daemon", func() bool {
		_, err := os.Stat(socket)
		return err == nil
	})
	n.configureIPAM("1.0.0", "web", map[string]any{"type": "dhcp", "daemonSocketPath": socket})
	a := testkit.NS(t, "a")
	r := n.add(a)
	if len(r.IPs) != 1 || !strings.HasPrefix(r.IPs[0].Address, "192.0.2.2") || !reaches(a, "192.0.2.20") {
		t.Errorf("addresses: %+v", r.IPs)
	}
	held := func() bool {
		b, err := os.ReadFile(leases)
		return err == nil && strings.Contains(string(b), r.Interfaces[1].Mac)
	}
	if !held() {
		t.Error("the server knows no lease")
	}
	if out, err := n.cni("del", a.Path()); err != nil {
		t.Fatalf("del: %v\n%s", err, out)
	}
	// The address is given back while the port still passes frames.
	n.await("the end of the lease", func() bool { return !held() })
}

// A container with the address of the one before it is reached at once: its neighbours are told its MAC.
func TestCNI_AReplacedContainerIsReachedAtOnce(t *testing.T) {
	n := newNetwork(t, "1.0.0", "")
	n.configureIPAM("1.0.0", "web", map[string]any{"type": "host-local", "dataDir": n.data, "ranges": []any{
		[]any{map[string]string{"subnet": "192.0.2.0/24", "rangeStart": "192.0.2.77", "rangeEnd": "192.0.2.77"}},
		[]any{map[string]string{"subnet": "2001:db8::/64", "rangeStart": "2001:db8::77", "rangeEnd": "2001:db8::77"}}}})
	nb := n.neighbour("192.0.2.20/24")
	run(t, nb, "ip addr add 2001:db8::20/64 dev eth0 nodad")
	for i, mac := range []string{"02:00:00:00:0c:01", "02:00:00:00:0c:02"} {
		c := testkit.NS(t, fmt.Sprint("c", i))
		// Hosts without IPv6 have it switched off for what comes.
		run(t, c, "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1")
		if r := n.add(c, `CAP_ARGS={"mac": "`+mac+`"}`); len(r.IPs) != 2 {
			t.Fatalf("%+v", r)
		}
		for _, ip := range []string{"192.0.2.77", "2001:db8::77"} {
			know := func() string { return run(t, nb, "ip neigh show to "+ip+" dev eth0") }
			if i > 0 { // told before anybody asks
				n.await(ip+" at "+mac, func() bool { return strings.Contains(know(), mac) })
			}
			if !pings(nb, ip) || !strings.Contains(know(), mac) {
				t.Errorf("container %d at %s: %s", i, ip, know())
			}
		}
		if out, err := n.cni("check", c.Path()); err != nil {
			t.Errorf("check: %v\n%s", err, out)
		}
		if out, err := n.cni("del", c.Path()); err != nil {
			t.Fatalf("del: %v\n%s", err, out)
		}
	}
}

// Routes stand in the table that the IPAM plugin says, and CHECK misses those that are gone.
func TestCNI_RoutesStandInTheirTables(t *testing.T) {
	n := newNetwork(t, "1.1.0", "")
	// A second plugin by the specification; none of the packages answers tables.
	fixed := filepath.Join(shortDir(t), "fixed")
	text := `#!/bin/sh
cat >/dev/null; [ "$CNI_COMMAND" = ADD ] || exit 0
echo '{"cniVersion": "1.1.0", "ips": [{"address": "198.51.100.5/24", "gateway": "198.51.100.1"}], "routes": [
 {"dst": "0.0.0.0/0", "table": 100, "priority": 7}, {"dst": "203.0.113.0/24", "scope": 253},
 {"dst": "192.0.2.0/24", "gw": "198.51.100.9"}]}'
`
	if err := os.WriteFile(fixed, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	n.plugins = filepath.Dir(fixed)
	n.configureIPAM("1.1.0", "web", map[string]any{"type": "fixed"})
	a := testkit.NS(t, "a")
	n.add(a)
	if have := strings.TrimSpace(run(t, a, "ip -4 route show table 100")); have !=
		"default via 198.51.100.1 dev eth0 metric 7" {
		t.Errorf("table 100: %s", have)
	}
	want := "192.0.2.0/24 via 198.51.100.9 dev eth0 \n" +
		"198.51.100.0/24 dev eth0 proto kernel scope link src 198.51.100.5 \n203.0.113.0/24 dev eth0 scope link \n"
	if have := run(t, a, "ip -4 route show"); have != want {
		t.Errorf("main table:\n%s", have)
	}
	if out, err := n.cni("check", a.Path()); err != nil {
		t.Errorf("check: %v\n%s", err, out)
	}
	run(t, a, "ip route del default table 100")
	if out, err := n.cni("check", a.Path()); err == nil || !strings.Contains(out, "lost its route to 0.0.0.0/0") {
		t.Errorf("check without a route: %v\n%s", err, out)
	}
}

// The specification has no limit for the name of a network; 0.3.1 is what Multus' examples ask for.
func TestCNI_LongNamesAndFormerVersions(t *testing.T) {
	h := newHost(t)
	names := []string{"storage-replication-net-01-" + h.name, "tenant-blue-secondary-network-0042-" + h.name + "-x",
		"tenant-blue-secondary-network-0042-" + h.name + "-y"}
	n := networkOn(h, names[0], "0.3.1", "192.0.2.0/24")
	for i, name := range names {
		n.name = name
		n.configure("0.3.1", "web", "192.0.2.0/24")
		r := n.add(testkit.NS(t, fmt.Sprint("l", i)))
		if len(r.IPs) != 1 || len(n.ports()) != i+1 {
			t.Errorf("%s: %+v, %+v", name, r, n.ports())
		}
	}
	conf := map[string]any{"type": "heddle-cni", "portGroup": "web", "mtu": 1401}
	n.configurePlugin("1.1.0", conf)
	if out, err := n.cni("status", "-"); err == nil || !strings.Contains(out, "mtu 1401 is larger than 1400") {
		t.Errorf("status: %v\n%s", err, out)
	}
	if out, err := n.cni("add", testkit.NS(t, "m").Path()); err == nil || !strings.Contains(out,
		"mtu 1401 is larger than 1400, that of switch lab") {
		t.Errorf("add: %v\n%s", err, out)
	}
}

// An IPAM plugin that never answers is named, and nothing is left of the container.
func TestCNI_AnIPAMPluginThatFailsIsNamed(t *testing.T) {
	n := newNetwork(t, "1.0.0", "")
	bad := filepath.Join(shortDir(t), "bad")
	if err := os.WriteFile(bad, []byte("#!/bin/sh\necho no server >&2; exit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	n.plugins = filepath.Dir(bad)
	n.configureIPAM("1.0.0", "web", map[string]any{"type": "bad"})
	out, err := n.cni("add", testkit.NS(t, "a").Path())
	if err == nil || !strings.Contains(out, "IPAM plugin bad: exit status 3") {
		t.Errorf("%v\n%s", err, out)
	}
	n.empty("after a failed plugin")
}
