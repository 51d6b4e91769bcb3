package adopttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/event"
	"heddle/internal/netns"
	"heddle/internal/testkit"
	"heddle/internal/testkit/realhost"
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

func newEstate(t *testing.T) *estate {
	t.Helper()
	testkit.Tool(t, "ip", "ping")
	e := &estate{gateway: testkit.NS(t, "gw")}
	e.host = &host{realhost.New(t, testkit.NS(t, "host"))}
	e.run("ip link add eth0 type veth peer name gw0 netns " + e.gateway.Name)
	e.run("ip link set eth0 up")
	for _, c := range []string{"ip link set gw0 up", "ip address add 192.0.2.1/24 dev gw0", "ip address add 192.0.2.2/24 dev gw0", "ip address add 2001:db8::1/64 dev gw0 nodad",
		"ip link set lo up", "ip address add 203.0.113.9/32 dev lo"} {
		e.outside(c)
	}
	for _, c := range []string{
		"ip address add 192.0.2.10/24 dev eth0 label eth0:main", "ip address add 192.0.2.11/24 dev eth0", "ip address add 2001:db8::10/64 dev eth0 nodad",
		"ip address add 2001:db8::11/64 dev eth0 nodad noprefixroute",
		"ip route add default via 192.0.2.1 dev eth0 src 192.0.2.11", "ip -6 route add default via 2001:db8::1 dev eth0",
		"ip route add 198.51.100.0/24 metric 5 nexthop via 192.0.2.1 dev eth0 weight 2 nexthop via 192.0.2.2 dev eth0", "ip route add 10.0.0.0/8 via 192.0.2.2 dev eth0 table 77",
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

// up waits until the uplink is.
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

// snapshot is everything the host's stack is configured with, but for what counts down by itself.
func (e *estate) snapshot() []string {
	e.T.Helper()
	var lines []string
	for _, c := range []string{"ip -j address", "ip -j route show table all", "ip -6 -j route show table all", "ip -j rule", "ip -6 -j rule", "ip -j neighbour show nud permanent"} {
		var list []map[string]any
		if err := json.Unmarshal([]byte(e.run(c)), &list); err != nil {
			e.T.Fatalf("%s: %v", c, err)
		}
		for _, o := range list {
			delete(o, "link_index")
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

// settled waits until the kernel's own routes of IPv6 addresses are there, and gives the snapshot.
func (e *estate) settled() (all []string) {
	e.T.Helper()
	e.Await("the configuration is quiet", func() bool {
		before := all
		all = e.snapshot()
		return slices.Equal(before, all) && !slices.ContainsFunc(all, func(l string) bool { return strings.Contains(l, `"tentative"`) }) &&
			slices.ContainsFunc(all, func(l string) bool {
				return strings.Contains(l, `"2001:db8::1`) && strings.Contains(l, `"local"`) && strings.Contains(l, "route")
			})
	})
	return all
}

// restored waits until everything is as it was.
func (e *estate) restored(before []string, why string) {
	e.T.Helper()
	var now []string
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(realhost.Poll) {
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

// reaches says whether the host reaches the gateway by both families.
func (e *estate) reaches() {
	e.T.Helper()
	for _, to := range []string{"192.0.2.1", "203.0.113.9", "2001:db8::1"} {
		if _, err := e.NS.Output("ping", "-n", "-c", "1", "-W", "5", to); err != nil {
			e.T.Errorf("the host does not reach %s: %v", to, err)
		}
	}
}

// happened says how often an event of that kind was published, and the last one's text.
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

// stream is a TCP connection from the host to the gateway that echoes; it counts round trips and the longest of them.
type stream struct {
	trips   atomic.Int64
	longest atomic.Int64
	stop    chan struct{}
	done    chan error
}

func (e *estate) stream(to string) *stream {
	e.T.Helper()
	var l net.Listener
	if err := e.gateway.Do(func() (err error) { l, err = net.Listen("tcp", net.JoinHostPort(to, "0")); return err }); err != nil {
		e.T.Fatal(err)
	}
	e.T.Cleanup(func() { l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		b := make([]byte, 64)
		for n, err := c.Read(b); err == nil; n, err = c.Read(b) {
			if _, err := c.Write(b[:n]); err != nil {
				return
			}
		}
	}()
	// A dialer may use another thread: connect by hand, on this one.
	var c net.Conn
	if err := e.NS.Do(func() (err error) { c, err = dialHere(l.Addr().(*net.TCPAddr)); return err }); err != nil {
		e.T.Fatal(err)
	}
	s := &stream{stop: make(chan struct{}), done: make(chan error, 1)}
	go func() { s.done <- s.talk(c) }()
	return s
}

func (s *stream) talk(c net.Conn) error {
	defer c.Close()
	b := make([]byte, 64)
	for {
		select {
		case <-s.stop:
			return nil
		case <-time.After(time.Millisecond):
		}
		began := time.Now()
		if err := c.SetDeadline(began.Add(realhost.Patience)); err != nil {
			return err
		}
		if _, err := c.Write([]byte("still there?")); err != nil {
			return err
		}
		if _, err := c.Read(b); err != nil {
			return err
		}
		s.trips.Add(1)
		s.longest.Store(max(s.longest.Load(), int64(time.Since(began))))
	}
}

// goesOn waits for more round trips.
func (e *estate) goesOn(s *stream, why string) {
	e.T.Helper()
	from := s.trips.Load()
	e.Await("the TCP connection goes on "+why, func() bool { return s.trips.Load() > from+20 })
}

func (e *estate) end(s *stream) {
	e.T.Helper()
	close(s.stop)
	if err := <-s.done; err != nil {
		e.T.Errorf("the TCP connection broke: %v", err)
	}
	e.T.Logf("%d round trips, the longest took %s", s.trips.Load(), time.Duration(s.longest.Load()))
}

func TestS81_AnAdoptionThatIsConfirmedStaysAndIsReleased(t *testing.T) {
	e := newEstate(t)
	before := e.settled()
	four, six := e.stream("203.0.113.9"), e.stream("2001:db8::1")
	e.goesOn(four, "before")
	e.goesOn(six, "before")
	if err := e.Heddle("host-port", "adopt", "eth0"); err != nil {
		t.Fatal(err)
	}
	e.reaches()
	e.goesOn(four, "after the move")
	e.goesOn(six, "after the move")
	if out := e.run("ip -o address show dev eth0 scope global"); out != "" {
		t.Errorf("left on eth0: %s", out)
	}
	if err := e.Heddle("host-port", "confirm"); err != nil {
		t.Fatal(err)
	}
	if a := e.adoption(); a.State != api.AdoptionConfirmed || !strings.Contains(a.Declaration, "vmk0") {
		t.Errorf("%+v", a)
	}
	e.End(syscall.SIGKILL)
	e.Start("")
	e.Configure(adoptConfig + "ports:\n" + strings.TrimPrefix(e.adoption().Declaration, "ports:\n"))
	e.goesOn(four, "after it was declared")
	if _, err := e.ReleaseAdoption(t.Context(), api.HostPortName{Name: "vmk0"}); err == nil {
		t.Error("released while the file declares it")
	}
	e.Configure(adoptConfig)
	e.reaches()
	if err := e.Disconnect(t.Context(), api.Disconnect{Port: "vmk0"}); err == nil {
		t.Error("disconnected the host's own addresses")
	}
	for _, args := range []string{"port move vmk0 --port-group web", "port block vmk0"} {
		if err := e.Heddle(strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), "host-port release vmk0") {
			t.Errorf("%s: %v", args, err)
		}
	}
	e.reaches()
	if err := e.Heddle("host-port", "release", "vmk0"); err != nil {
		t.Fatal(err)
	}
	e.goesOn(four, "after the release")
	e.goesOn(six, "after the release")
	e.end(four)
	e.end(six)
	e.restored(before, "released")
}

func TestS81_AnAdoptionIsTakenBackWhenTheGatewayIsSilent(t *testing.T) {
	e := newEstate(t)
	before := e.settled()
	s := e.stream("203.0.113.9")
	err := e.Heddle("host-port", "adopt", "eth0", "--gateway", "192.0.2.77", "--gateway-within", "2s")
	if err == nil || !strings.Contains(err.Error(), "192.0.2.77 did not answer") {
		t.Errorf("%v", err)
	}
	e.restored(before, "silent gateway")
	if n, text := e.happened(event.Reverted); n != 1 || !strings.Contains(text, "did not answer") {
		t.Errorf("%d events, the last: %s", n, text)
	}
	e.goesOn(s, "after it was taken back")
	e.end(s)
}

func TestS81_AnAdoptionIsTakenBackWhenNobodyConfirms(t *testing.T) {
	e := newEstate(t)
	before := e.settled()
	s := e.stream("203.0.113.9")
	if err := e.Heddle("host-port", "adopt", "eth0", "--confirm-within", "3s", "--name", "mgmt0"); err != nil {
		t.Fatal(err)
	}
	e.Await("it is taken back", func() bool { return e.adoption().State == api.AdoptionReverted })
	e.restored(before, "not confirmed")
	if a := e.adoption(); !strings.Contains(a.Reason, "not confirmed") {
		t.Errorf("%+v", a)
	}
	e.goesOn(s, "after it was taken back")
	e.end(s)
	if err := e.Heddle("host-port", "confirm", "mgmt0"); err == nil {
		t.Error("confirmed what was taken back")
	}
}

// The machine starts again: its boot has another name, interfaces made by the agent are gone, and the host's own network
// configuration puts the addresses where it always does.
func TestS81_AfterARebootTheHostsOwnConfigurationCounts(t *testing.T) {
	e := newEstate(t)
	if err := e.Heddle("host-port", "adopt", "eth0"); err != nil {
		t.Fatal(err)
	}
	e.reaches()
	if err := e.Heddle("host-port", "confirm"); err != nil {
		t.Fatal(err)
	}
	e.End(syscall.SIGKILL)
	e.run("ip link delete vmk0")
	for _, c := range []string{"ip address add 192.0.2.10/24 dev eth0", "ip address add 2001:db8::10/64 dev eth0 nodad",
		"ip route add default via 192.0.2.1 dev eth0", "ip -6 route add default via 2001:db8::1 dev eth0"} {
		e.run(c)
	}
	e.reboot()
	before := e.settled()
	e.Start("")
	e.up()
	e.reaches()
	e.restored(before, "after the reboot")
	all, err := e.HostPorts(t.Context())
	if err != nil || len(all) != 0 {
		t.Errorf("%v: %+v", err, all)
	}
	if n, text := e.happened(event.Reverted); n != 1 || !strings.Contains(text, "started again") {
		t.Errorf("%d reverted: %s", n, text)
	}
	if err := e.Heddle("host-port", "adopt", "eth0", "--dry-run"); err != nil {
		t.Errorf("adopting again: %v", err)
	}
}

func TestS81_DownMovesTheHostsAddressesBack(t *testing.T) {
	e := newEstate(t)
	before := e.settled()
	s := e.stream("203.0.113.9")
	if err := e.Heddle("host-port", "adopt", "eth0"); err != nil {
		t.Fatal(err)
	}
	if err := e.Heddle("host-port", "confirm"); err != nil {
		t.Fatal(err)
	}
	if err := e.Heddle("down"); err != nil {
		t.Fatal(err)
	}
	e.reaches()
	e.goesOn(s, "after down")
	e.end(s)
	e.Start("")
	e.up()
	e.restored(before, "down, and started again")
}

func TestS81_WhatStandsAgainstAnAdoptionIsSaidAndNothingIsTouched(t *testing.T) {
	e := newEstate(t)
	e.run("ip link add bare type veth peer name bare1")
	before := e.settled()
	for _, c := range []struct{ args, want string }{
		{"nope", "no device"}, {"bare", "no uplink"}, {"eth0 --port-group nope", "nope"}, {"eth0 --port-group web", "untagged"},
		{"eth0 --name bare1", "exists already"}, {"eth0 --name much-too-long-a-name", "name for a network interface"}, {"eth0 --gateway me", "no IP address"}, {"eth0 --confirm-within 0s", "time to confirm"},
	} {
		if err := e.Heddle(append([]string{"host-port", "adopt"}, strings.Fields(c.args)...)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("adopt %s: %v", c.args, err)
		}
	}
	if err := e.Heddle("host-port", "adopt", "eth0", "--dry-run"); err != nil {
		t.Error(err)
	}
	e.restored(before, "refused")
	if n, _ := e.happened(event.Adopted); n != 0 {
		t.Errorf("%d adoptions", n)
	}
}

func TestS81_TheAgentIsKilledDuringTheMove(t *testing.T) {
	e := newEstate(t)
	before := e.settled()
	s := e.stream("203.0.113.9")
	for i := range 8 {
		cmd := e.Command("host-port", "adopt", "eth0", "--confirm-within", "1h")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := e.NS.Start(cmd); err != nil {
			t.Fatal(err)
		}
		e.Await(fmt.Sprintf("step %d is begun", i), func() bool { return e.begun() >= i })
		e.End(syscall.SIGKILL)
		_ = cmd.Wait() // it lost the agent
		e.Start("")
		e.up()
		all, err := e.HostPorts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 1 { // it was done, and is waited for
			e.reaches()
			if _, err := e.ReleaseAdoption(t.Context(), api.HostPortName{Name: all[0].Name}); err != nil {
				t.Error(err)
			}
		}
		e.restored(before, fmt.Sprintf("killed in round %d: %s", i, out.String()))
		e.goesOn(s, "after a kill")
		if t.Failed() {
			return
		}
	}
	e.end(s)
}
