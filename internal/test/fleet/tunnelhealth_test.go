package fleet

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// TestS109_HostsFindWhatTunnelsLack: three hosts of an overlay segment probe each other through their tunnels. An MTU
// that is too low, lost and late packets, a direction that is cut and an endpoint that is unreachable are each named
// with the remedy, by the controller and on the hosts, and gone after the repair.
func TestS109_HostsFindWhatTunnelsLack(t *testing.T) {
	testkit.Long(t, "makes each fault of a tunnel and repairs it; TestS109_AHostWithoutAHealthCheckAnswersProbes "+
		"has the health check")
	t.Parallel()
	testkit.Tool(t, "nft")
	f := newFleetSized(t, 3, ownConfig, "own1", "own2")
	router := f.routed()
	must := func(args ...string) {
		t.Helper()
		if out, err := router.Output(args[0], args[1:]...); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	f.controller.Start()
	for n, h := range f.hosts {
		f.controller.Join(h.Host, fmt.Sprintf("esx%d", n), map[string]string{"rack": "a"})
	}
	f.controller.Define(strings.Replace(segmentText, "- name: dvs\n", "- name: dvs\n  healthCheck: true\n", 1))
	for n := range f.hosts {
		f.connect(n, 3, "p-web", "web")
	}
	f.tunnelsPass()

	must("ip", "link", "set", "r2", "mtu", "1530")
	must("nft", "add table ip t; add chain ip t f { type filter hook forward priority 0; }; "+
		"add rule ip t f ip saddr 10.9.1.2 ip daddr 10.9.0.2 udp dport 4789 numgen random mod 100 < 25 drop")
	stop := late(t, router, 400*time.Millisecond)
	must("ip", "route", "add", "default", "dev", "late", "table", "77")
	must("ip", "rule", "add", "iif", "r2", "to", "10.9.1.2", "lookup", "77")
	f.finds("mtu", "of up to 1480 bytes between esx2 (10.9.2.2) and ", "their MTU is 1500", "to at least 1550")
	f.finds("slow", "between esx1 (10.9.1.2) and esx2 (10.9.2.2) take up to ")
	f.finds("lossy", "% of the probes between esx0 (10.9.0.2) and esx1 (10.9.1.2) get lost")
	must("ip", "rule", "del", "iif", "r2", "to", "10.9.1.2", "lookup", "77")
	must("nft", "flush ruleset")
	must("ip", "link", "set", "r2", "mtu", "1600")
	stop()
	f.tunnelsPass()

	must("nft", "add table ip t; add chain ip t f { type filter hook forward priority 0; }; "+
		"add rule ip t f ip saddr 10.9.1.2 ip daddr 10.9.0.2 udp dport 4789 drop")
	f.finds("one-way", "pass from esx0 (10.9.0.2) to esx1 (10.9.1.2), and not back",
		"drops UDP to port 4789 from 10.9.1.2 to 10.9.0.2")
	out, err := f.hosts[0].Output(t.Context(), "events", "--no-follow", "--kind", "network")
	if err != nil || !strings.Contains(string(out), "and not back") {
		t.Errorf("the events of the host: %s", out)
	}
	must("nft", "flush ruleset")
	f.tunnelsPass()

	must("nft", "add table ip t; add chain ip t f { type filter hook forward priority 0; }; "+
		"add rule ip t f ip daddr 10.9.2.2 drop; add rule ip t f ip saddr 10.9.2.2 drop")
	f.finds("tunnel-unreachable", "tunnel endpoint esx2 (10.9.2.2) of switch dvs is unreachable: none of the 2 ")
	must("nft", "flush ruleset")
	f.tunnelsPass()
}

// health is what the probes of all hosts have found.
func (f *fleet) health() (h api.NetworkHealth, text string) {
	f.t.Helper()
	out, errs, _ := f.controller.Heddle("health", "-o", "json")
	if err := json.Unmarshal([]byte(out), &h); err != nil {
		f.t.Fatalf("%v: %s%s", err, out, errs)
	}
	return h, out
}

// tunnelsPass waits until all pairs of endpoints are known to pass, and nothing is wrong. Loss and delay are those of
// some minutes, and notes alone.
func (f *fleet) tunnelsPass() {
	f.t.Helper()
	var last string
	f.t.Cleanup(func() {
		if f.t.Failed() {
			f.t.Logf("the last health: %s", last)
		}
	})
	f.controller.Await("all tunnels pass", func() (pass bool) {
		var h api.NetworkHealth
		h, last = f.health()
		return h.Tunnels == 6 && h.TunnelsPassing == 6 && !slices.ContainsFunc(h.Findings,
			func(x api.NetworkFinding) bool { return !x.Note })
	})
}

// finds waits for a finding with these parts in its text or remedy.
func (f *fleet) finds(code string, parts ...string) {
	f.t.Helper()
	var last string
	f.t.Cleanup(func() {
		if f.t.Failed() {
			f.t.Logf("the last health while %s was awaited: %s", code, last)
		}
	})
	defer func() { f.t.Logf("found: %s", code) }()
	f.controller.Await("the finding "+code, func() bool {
		var h api.NetworkHealth
		h, last = f.health()
		return slices.ContainsFunc(h.Findings, func(x api.NetworkFinding) bool {
			text := x.Text + ": " + x.Remedy
			return x.Code == code && !slices.ContainsFunc(parts, func(p string) bool {
				return !strings.Contains(text, p)
			})
		})
	})
}

// late makes a device "late" in a namespace: what is routed to it comes back from it after a while.
func late(t *testing.T, ns *netns.NS, after time.Duration) (stop func()) {
	t.Helper()
	var file *os.File
	inside(t, ns, func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		req, err := unix.NewIfreq("late")
		if err != nil {
			return err
		}
		req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
			return err
		}
		file = os.NewFile(uintptr(fd), "late")
		return nil
	})
	for _, args := range [][]string{{"ip", "link", "set", "late", "up", "mtu", "1600"},
		{"sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.late.rp_filter=0"}} {
		if out, err := ns.Output(args[0], args[1:]...); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	done := make(chan struct{})
	packets := make(chan struct {
		due   time.Time
		bytes []byte
	}, 4096)
	go func() {
		defer close(packets)
		for {
			b := make([]byte, 2048)
			n, err := file.Read(b)
			if err != nil {
				return
			}
			packets <- struct {
				due   time.Time
				bytes []byte
			}{time.Now().Add(after), b[:n]}
		}
	}()
	go func() {
		defer close(done)
		for p := range packets {
			time.Sleep(time.Until(p.due)) // the delay itself
			_, _ = file.Write(p.bytes)    // the device may be gone
		}
	}()
	ended := false
	stop = func() {
		if !ended {
			ended = true
			_ = file.Close()
			<-done
		}
	}
	t.Cleanup(stop)
	return stop
}

// TestS84_ADeadProxyIsReplacedByTheSendersOwnProbes: without controllers, a host whose proxy in another subnet does not
// answer has another host there repeat its broadcasts, and takes the first one again when it answers.
func TestS84_ADeadProxyIsReplacedByTheSendersOwnProbes(t *testing.T) {
	testkit.Long(t, "waits for probes to fail; TestS84_AProxyRepeatsIntoItsOwnSubnet has a proxy")
	t.Parallel()
	r := newProxies(t)
	r.reach("all are there", 1, 2)
	r.command(r.router, "ip", "link", "set", "r2", "down")
	r.reach("the proxy is dead", 2)
	r.hosts[0].Await("the sender knows that another host answers in its place", func() bool {
		h, err := r.hosts[0].Service.NetworkHealth(t.Context())
		return err == nil && h.Alone && h.TunnelsPassing > 0
	})
	r.command(r.router, "ip", "link", "set", "r2", "up")
	r.reach("the proxy is back", 1, 2)
}

// proxyConfig is a host of a segment with two-tier replication.
const proxyConfig = `
switches:
- name: lab
  tunnel:
    replication: two-tier
    endpoints: [{address: "%s"}]
    peers: [%s]
  portGroups: [{name: web, overlay: {vni: 5000}}]
ports:
- {name: one, switch: lab, portGroup: web, device: p-one, mac: "02:00:00:00:00:%02x"}
`

// newProxies makes three hosts, the second and the third of which are one subnet.
func newProxies(t *testing.T) *overlayRig {
	t.Helper()
	testkit.Tool(t, "ip")
	r := &overlayRig{t: t, router: testkit.NS(t, "router")}
	r.command(r.router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
	spaces := []*netns.NS{testkit.NS(t, "host0"), testkit.NS(t, "host1"), testkit.NS(t, "host2")}
	for i, ns := range spaces {
		r.underlay(i+1, ns, false)
	}
	for i, ns := range spaces {
		h := newHost(t, ns)
		r.hosts = append(r.hosts, h)
		r.guests = append(r.guests, []*cable.End{h.PlugInto(testkit.NS(t, "one"), "p-one", cable.MAC(byte(10*i+1)))})
		var peers []string
		for k := range spaces {
			subnet := ""
			if k > 0 {
				subnet = ", subnet: 10.9.2.0/23"
			}
			if k != i {
				peers = append(peers, fmt.Sprintf("{name: h%d, address: %q%s}", k, r.addr[k], subnet))
			}
		}
		h.Start(fmt.Sprintf(proxyConfig, r.addr[i], strings.Join(peers, ", "), 10*i+1))
		h.Up("one", "tunnel")
	}
	return r
}

// TestS109_AHostWithoutAHealthCheckAnswersProbes: where hosts have files of their own and one of them has the health
// check, the others answer it, and have nothing to say themselves.
func TestS109_AHostWithoutAHealthCheckAnswersProbes(t *testing.T) {
	t.Parallel()
	r := newProxies(t)
	for i, h := range r.hosts {
		var peers []string
		for k, a := range r.addr {
			if k != i {
				peers = append(peers, fmt.Sprintf("{name: h%d, address: %q}", k, a))
			}
		}
		text := fmt.Sprintf(proxyConfig, r.addr[i], strings.Join(peers, ", "), 10*i+1)
		text = strings.Replace(text, "    replication: two-tier\n", "", 1)
		if i == 0 {
			text = strings.Replace(text, "- name: lab\n", "- name: lab\n  healthCheck: true\n", 1)
		}
		h.Configure(text)
	}
	r.hosts[0].Await("the host that probes gets answers of both others", func() bool {
		h, err := r.hosts[0].Service.NetworkHealth(t.Context())
		return err == nil && h.Tunnels == 2 && h.TunnelsPassing == 2 && len(h.Findings) == 0
	})
	if h, err := r.hosts[1].Service.NetworkHealth(t.Context()); err != nil || h.Tunnels != 0 || len(h.Findings) != 0 {
		t.Errorf("a host that only answers says %+v, %v", h, err)
	}
}

// reach waits until a broadcast of the first host's guest comes to those of others.
func (r *overlayRig) reach(what string, hosts ...int) {
	r.t.Helper()
	n := 0
	r.hosts[0].Await("a broadcast arrives: "+what, func() bool {
		n++
		frame := cable.Frame(cable.Broadcast(), cable.MAC(1), 0, fmt.Sprintf("%s, try %d", what, n))
		r.guests[0][0].Send(frame)
		return !slices.ContainsFunc(hosts, func(i int) bool {
			return !r.guests[i][0].Await(frame, 2*time.Second)
		})
	})
}
