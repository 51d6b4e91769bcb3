package adopttest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/observe/event"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/realhost"
)

const adoptConfig = `
switches:
  - name: lab
    uplinks: [{name: uplink1, device: eth0}]
    portGroups:
      - {name: management}
      - {name: web, vlan: {access: 10}}
`

// estate is a host whose own addresses are on the uplink's device, and the network's gateway.
type estate struct {
	*host
	gateway *netns.NS
}

// newCables makes the host, the gateway and the cable between them; nothing is configured on the host yet.
func newCables(t *testing.T) *estate {
	t.Helper()
	testkit.Tool(t, "ip", "ping")
	e := &estate{gateway: testkit.NS(t, "gw")}
	e.host = &host{realhost.New(t, testkit.NS(t, "host"))}
	e.run("ip link add eth0 type veth peer name gw0 netns " + e.gateway.Name)
	e.run("ip link set eth0 up")
	for _, c := range []string{"ip link set gw0 up", "ip address add 192.0.2.1/24 dev gw0",
		"ip address add 192.0.2.2/24 dev gw0", "ip address add 2001:db8::1/64 dev gw0 nodad",
		"ip link set lo up", "ip address add 203.0.113.9/32 dev lo"} {
		e.outside(c)
	}
	return e
}

func newEstate(t *testing.T) *estate {
	t.Helper()
	e := newCables(t)
	for _, c := range []string{
		"ip address add 192.0.2.10/24 dev eth0 label eth0:main", "ip address add 192.0.2.11/24 dev eth0",
		"ip address add 2001:db8::10/64 dev eth0 nodad",
		"ip address add 2001:db8::11/64 dev eth0 nodad noprefixroute",
		"ip route add default via 192.0.2.1 dev eth0 src 192.0.2.11",
		"ip -6 route add default via 2001:db8::1 dev eth0",
		"ip route add 198.51.100.0/24 metric 5 nexthop via 192.0.2.1 dev eth0 weight 2 nexthop via 192.0.2.2 dev eth0",
		"ip route add 10.0.0.0/8 via 192.0.2.2 dev eth0 table 77",
		"ip rule add iif eth0 lookup 77 priority 500", "ip -6 rule add oif eth0 lookup 78 priority 501",
		"ip neighbour add 192.0.2.99 lladdr 02:00:00:00:00:99 dev eth0 nud permanent",
	} {
		e.run(c)
	}
	e.Start("")
	e.Configure(adoptConfig)
	e.up()
	return e
}

// up waits until the uplink is up.
func (e *estate) up() {
	e.T.Helper()
	e.Await("the uplink is up", func() bool {
		s, err := e.State(e.T.Context())
		return err == nil && len(s.Uplinks) == 1 && s.Uplinks[0].State == api.Up
	})
}

func (e *estate) run(command string) string {
	e.T.Helper()
	f := strings.Fields(command)
	out, err := e.NS.Output(f[0], f[1:]...)
	if err != nil {
		e.T.Fatal(err)
	}
	return string(out)
}

func (e *estate) outside(command string) {
	e.T.Helper()
	f := strings.Fields(command)
	if _, err := e.gateway.Output(f[0], f[1:]...); err != nil {
		e.T.Fatal(err)
	}
}

// snapshot returns the whole network configuration of the host, without lifetimes, which count down by themselves.
func (e *estate) snapshot() []string {
	e.T.Helper()
	var lines []string
	for _, c := range []string{"ip -j address", "ip -j route show table all", "ip -6 -j route show table all",
		"ip -j rule", "ip -6 -j rule", "ip -j neighbour show nud permanent"} {
		var list []map[string]any
		if err := json.Unmarshal([]byte(e.run(c)), &list); err != nil {
			e.T.Fatalf("%s: %v", c, err)
		}
		for _, o := range list {
			delete(o, "link_index")
			if name, _ := o["ifname"].(string); strings.HasSuffix(name, "vmk0") || strings.HasSuffix(name, "vmk1") {
				// an address that is made again has another number
				delete(o, "ifindex")
				if strings.HasPrefix(name, "sw-") {
					delete(o, "address")
				}
			}
			b, err := json.Marshal(o)
			if err != nil {
				e.T.Fatal(err)
			}
			lines = append(lines, c+": "+string(b))
		}
	}
	for _, s := range []string{"ipv4/conf/eth0/rp_filter", "ipv6/conf/eth0/accept_ra"} {
		lines = append(lines, s+": "+strings.TrimSpace(e.run("cat /proc/sys/net/"+s)))
	}
	slices.Sort(lines)
	return lines
}

// settled waits until the kernel has made its own routes for IPv6 addresses, and returns the snapshot.
func (e *estate) settled() (all []string) {
	e.T.Helper()
	e.Await("the configuration is quiet", func() bool {
		before := all
		all = e.snapshot()
		return slices.Equal(before, all) &&
			!slices.ContainsFunc(all, func(l string) bool { return strings.Contains(l, `"tentative"`) }) &&
			slices.ContainsFunc(all, func(l string) bool {
				return strings.Contains(l, `"2001:db8::1`) && strings.Contains(l, `"local"`) &&
					strings.Contains(l, "route")
			})
	})
	return all
}

// restored waits until the host's configuration equals the snapshot before.
func (e *estate) restored(before []string, why string) {
	e.T.Helper()
	var now []string
	for deadline := time.Now().Add(realhost.Patience); ; time.Sleep(realhost.Poll) {
		if now = e.snapshot(); slices.Equal(before, now) {
			return
		}
		if time.Now().After(deadline) {
			break
		}
	}
	for _, l := range before {
		if !slices.Contains(now, l) {
			e.T.Errorf("%s: missing %s", why, l)
		}
	}
	for _, l := range now {
		if !slices.Contains(before, l) {
			e.T.Errorf("%s: left %s", why, l)
		}
	}
}

func (e *estate) adoption() api.Adoption {
	e.T.Helper()
	a, err := e.Adoption(e.T.Context(), api.HostPortName{})
	if err != nil {
		e.T.Fatal(err)
	}
	return *a
}

// reaches reports whether the host reaches the gateway by both families.
func (e *estate) reaches() {
	e.T.Helper()
	for _, to := range []string{"192.0.2.1", "203.0.113.9", "2001:db8::1"} {
		// Linux counts a neighbour as unreachable for a moment longer if it was looked up while the path was cut.
		e.Await("the host reaches "+to, func() bool {
			_, err := e.NS.Output("ping", "-n", "-c", "1", "-W", "5", to)
			return err == nil
		})
	}
}

// happened returns how many events of that kind were published, and the text of the last one.
func (e *estate) happened(kind event.Kind) (n int, text string) {
	e.T.Helper()
	err := e.Events(e.T.Context(), api.Follow{Last: -1, NoFollow: true}, func(b api.Events) error {
		for _, v := range b.Events {
			if v.Kind == kind {
				n, text = n+1, v.Text
			}
		}
		return nil
	})
	if err != nil {
		e.T.Fatal(err)
	}
	return n, text
}
