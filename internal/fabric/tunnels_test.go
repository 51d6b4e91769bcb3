package fabric

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"heddle/internal/test/testkit"
)

func address(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
}

// Of a thousand hosts each probes four others, is probed by somebody, and has others in the next epoch.
func TestS109_FewPairsOfTunnelsAreProbed(t *testing.T) {
	testkit.Long(t, "goes through all pairs of a thousand hosts")
	const hosts = 1000
	var all []netip.Addr
	for i := range hosts {
		all = append(all, address(i))
	}
	probed := map[End]int{}
	other := 0
	for i := range hosts {
		r := Ring{Own: all[i : i+1], Others: append(append([]netip.Addr{}, all[:i]...), all[i+1:]...), MTU: 1500,
			Pairs: true}
		now, next := r.Tasks(1), r.Tasks(2)
		if len(now) > MostPairs || len(now) < MostPairs/2 {
			t.Fatalf("host %d probes %d others", i, len(now))
		}
		for k := range now {
			probed[now[k].To]++
			if k >= len(next) || now[k] != next[k] {
				other++
			}
			if now[k].From == now[k].To || now[k].Every != TunnelRound {
				t.Fatalf("%+v", now[k])
			}
		}
	}
	if len(probed) != hosts || other < hosts {
		t.Errorf("%d of %d endpoints are probed, %d paths are others in the next epoch", len(probed), hosts, other)
	}
}

// tunnelNet is what is wrong between endpoints, by their numbers.
type tunnelNet struct {
	dead   map[int]bool
	cut    map[[2]int]bool // one way
	low    map[[2]int]int
	lossy  map[[2]int]int
	slow   map[[2]int]bool
	number int
}

func (n *tunnelNet) found() (list []Tunnel) {
	for a := range n.number {
		for b := range n.number {
			if a == b {
				continue
			}
			pair := [2]int{min(a, b), max(a, b)}
			x := Tunnel{Switch: "dvs", Host: fmt.Sprintf("id%d", a), Name: fmt.Sprintf("h%d", a), Own: address(a),
				Peer: address(b), PeerName: fmt.Sprintf("h%d", b), MTU: 1500, Port: 4789,
				Result: Result{State: Passes, Full: Passes, Delay: time.Millisecond, Usual: time.Millisecond}}
			there, back := !n.cut[[2]int{a, b}], !n.cut[[2]int{b, a}]
			if n.dead[a] || n.dead[b] || !there || !back {
				x.Result = Result{State: Lost}
			}
			x.Deaf = back && !there // what b sends arrives here, and b does not hear
			if fits := n.low[pair]; fits != 0 {
				x.Full, x.Fits = Lost, fits
			}
			x.Loss = n.lossy[pair]
			if n.slow[pair] {
				x.Delay = 80 * time.Millisecond
			}
			list = append(list, x)
		}
	}
	return list
}

func TestS109_WhatTunnelsLack(t *testing.T) {
	for _, c := range []struct {
		name string
		net  tunnelNet
		want []string // code, then a part of the text
	}{
		{"nothing", tunnelNet{number: 4}, nil},
		{"an endpoint is unreachable", tunnelNet{number: 4, dead: map[int]bool{2: true}}, []string{
			"tunnel-unreachable tunnel endpoint h2 (10.0.0.2) of switch dvs is unreachable: none of the 3 endpoints"}},
		{"two of two", tunnelNet{number: 2, dead: map[int]bool{1: true}}, []string{
			"tunnel-unreachable no packets of the tunnel of switch dvs pass between h0 (10.0.0.0) and h1 (10.0.0.1)"}},
		{"all", tunnelNet{number: 5, dead: map[int]bool{0: true, 1: true, 2: true, 3: true, 4: true}}, []string{
			"tunnel-unreachable no packets of the tunnel of switch dvs pass between any of 5 endpoints"}},
		{"one direction", tunnelNet{number: 3, cut: map[[2]int]bool{{1, 0}: true}}, []string{
			"one-way packets of the tunnel of switch dvs pass from h0 (10.0.0.0) to h1 (10.0.0.1), and not back"}},
		{"both directions", tunnelNet{number: 3, cut: map[[2]int]bool{{1, 0}: true, {0, 1}: true}}, []string{
			"tunnel-unreachable no packets of the tunnel of switch dvs pass between h0 (10.0.0.0) and h1 (10.0.0.1)"}},
		{"an MTU at one host", tunnelNet{number: 4, low: map[[2]int]int{{0, 3}: 1400, {1, 3}: 1400, {2, 3}: 1400}},
			[]string{"mtu the tunnel of switch dvs carries packets of guests of up to 1400 bytes between h3 " +
				"(10.0.0.3) and h0 (10.0.0.0), h1 (10.0.0.1) and h2 (10.0.0.2), and their MTU is 1500"}},
		{"loss and delay", tunnelNet{number: 4, lossy: map[[2]int]int{{0, 1}: 20}, slow: map[[2]int]bool{{2, 3}: true}},
			[]string{"lossy in the tunnel of switch dvs, up to 20 % of the probes between h0 (10.0.0.0) and h1",
				"slow in the tunnel of switch dvs, probes between h2 (10.0.0.2) and h3 (10.0.0.3) take up to 80ms, " +
					"usually 1ms"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Tunnels(c.net.found())
			ok := len(got) == len(c.want)
			for i := 0; ok && i < len(got); i++ {
				ok = strings.HasPrefix(string(got[i].Code)+" "+got[i].Text, c.want[i]) && got[i].Remedy != "" &&
					len(got[i].Hosts) > 0
			}
			if !ok {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// Many pairs with the same fault are few lines.
func TestS109_ManyTunnelsAreFewLines(t *testing.T) {
	n := tunnelNet{number: 60, lossy: map[[2]int]int{}}
	for i := 0; i < 60; i += 2 {
		n.lossy[[2]int{i, i + 1}] = 10
	}
	got := Tunnels(n.found())
	if len(got) != mostTunnelFindings ||
		!strings.HasSuffix(got[len(got)-1].Text, "; likewise 14 more pairs of endpoints") {
		t.Errorf("%d findings, the last: %s", len(got), got[len(got)-1].Text)
	}
}

// The usual delay follows the present one over hours: a tunnel that becomes slow is so against its own usual delay. A
// path that is probed more often is known to be lost sooner.
func TestS109_TheUsualDelayFollowsSlowly(t *testing.T) {
	m := NewMachine()
	task := Task{Path: Path{From: TunnelEnd(address(1)), To: TunnelEnd(address(2))}, MTU: 1500, Every: TunnelRound}
	now := time.Unix(1e9, 0)
	m.Set([]Task{task}, now)
	end := now.Add(10 * time.Minute)
	turn := func(delay time.Duration, lost bool) {
		now = m.Next()
		for _, s := range m.Due(now) {
			if !lost {
				m.Echo(s.Answer(), s.Path.From.Uplink, now.Add(delay))
			}
		}
	}
	for now.Before(end) {
		turn(time.Millisecond, false)
	}
	r := m.Results()[0]
	if r.State != Passes || r.Full != Passes || r.Delay.Round(time.Millisecond) != time.Millisecond ||
		r.Usual.Round(time.Millisecond) != time.Millisecond {
		t.Fatalf("%+v", r)
	}
	end = now.Add(time.Minute)
	for now.Before(end) {
		turn(100*time.Millisecond, false)
	}
	if r = m.Results()[0]; r.Delay < 50*time.Millisecond || r.Usual > 5*time.Millisecond {
		t.Fatalf("slow: %+v", r)
	}
	end = now.Add(15 * time.Second)
	for now.Before(end) && m.Results()[0].State != Lost {
		turn(0, true)
	}
	if m.Results()[0].State != Lost {
		t.Error("a tunnel that is probed every 5 s is not known to be lost after 15 s")
	}
}
