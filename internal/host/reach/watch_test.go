package reach

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"heddle/internal/host/hostnet"
)

var (
	gateway = netip.MustParseAddr("192.0.2.1")
	other   = netip.MustParseAddr("192.0.2.7")
	vm      = netip.MustParseAddr("192.0.2.8")
)

// fakeNet is a network of one interface. Neighbours that exist answer.
type fakeNet struct {
	there    map[netip.Addr]bool
	known    map[netip.Addr]*hostnet.Neighbour
	routes   []netip.Addr
	sessions []hostnet.Session
	asked    int
	prefix   string
}

func newFakeNet(there ...netip.Addr) *fakeNet {
	f := &fakeNet{there: map[netip.Addr]bool{}, known: map[netip.Addr]*hostnet.Neighbour{},
		routes: []netip.Addr{gateway}, prefix: "192.0.2.10/24"}
	for i, a := range there {
		f.there[a] = true
		// Answers from before the request do not count.
		f.known[a] = &hostnet.Neighbour{Address: a, MAC: [6]byte{2, 0, 0, 0, 0, byte(i + 1)}, Reachable: true}
	}
	return f
}

func (f *fakeNet) Index(string) (uint32, bool) { return 7, true }
func (f *fakeNet) Survey(name string, index uint32) (*hostnet.Config, error) {
	return &hostnet.Config{Device: name, Index: index, Gateways: f.routes, Prefixes: []string{f.prefix}}, nil
}
func (f *fakeNet) Neighbours(uint32) (list []hostnet.Neighbour, err error) {
	for _, n := range f.known {
		list = append(list, *n)
	}
	return list, nil
}
func (f *fakeNet) Ask(_ uint32, ip netip.Addr) error {
	f.asked++
	if f.known[ip] == nil {
		f.known[ip] = &hostnet.Neighbour{Address: ip}
	}
	f.known[ip].Reachable, f.known[ip].Asking = f.there[ip], !f.there[ip]
	return nil
}
func (f *fakeNet) Sessions() ([]hostnet.Session, error) { return f.sessions, nil }

func (f *fakeNet) before(t *testing.T, outside bool) []Ask {
	t.Helper()
	asks, err := Before(context.Background(), f, []Interface{{"vmk0", outside}}, func(mac [6]byte) bool {
		return f.known[vm] != nil && mac == f.known[vm].MAC
	})
	if err != nil {
		t.Fatal(err)
	}
	return asks
}

func TestS81_WhoAnswersBeforeTheChangeIsAskedAfterIt(t *testing.T) {
	for _, c := range []struct {
		what    string
		there   []netip.Addr
		outside bool
		want    []netip.Addr
	}{
		{"where a gateway answers, nobody else counts", []netip.Addr{gateway, other}, true, []netip.Addr{gateway}},
		{"a neighbour, where the gateway is silent", []netip.Addr{other}, true, []netip.Addr{other}},
		{"a port of this host does not", []netip.Addr{vm}, true, nil},
		{"nor a neighbour where no uplink is", []netip.Addr{other}, false, nil},
		{"nobody", nil, true, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asks := newFakeNet(c.there...).before(t, c.outside)
				if len(asks) != len(c.want) || len(asks) > 0 && asks[0].Address != c.want[0] {
					t.Errorf("%s: %v, want %v", c.what, asks, c.want)
				}
			})
		})
	}
}

func TestS81_AnIdleConnectionSaysNothingAndOneThatMovesDoes(t *testing.T) {
	f := newFakeNet()
	f.sessions = []hostnet.Session{{Local: netip.MustParseAddrPort("192.0.2.10:22"),
		Remote: netip.MustParseAddrPort("203.0.113.9:4711"), Heard: 5},
		{Local: netip.MustParseAddrPort("192.0.2.10:22"), Remote: netip.MustParseAddrPort("203.0.113.9:4712"),
			Heard: 5}}
	r := NewRound(f, []Ask{{Device: "vmk0", Kind: Session, Local: f.sessions[0].Local, Remote: f.sessions[0].Remote},
		{Device: "vmk0", Kind: Session, Local: f.sessions[1].Local, Remote: f.sessions[1].Remote}})
	for range 2 {
		if err := r.Look(); err != nil || len(Missing(r.Asks)) != 2 {
			t.Fatalf("%v: %v", err, r.Asks)
		}
	}
	f.sessions[1].Heard++
	if err := r.Look(); err != nil || r.Asks[0].Answered || !r.Asks[1].Answered || len(Missing(r.Asks)) != 0 {
		t.Errorf("%v: %v", err, r.Asks)
	}
}

func TestS81_TheHostIsReachedAfterTwoRounds(t *testing.T) {
	f := newFakeNet(gateway)
	now := time.Now()
	w := NewWatch(f, []Ask{{Device: "vmk0", Kind: Gateway, Address: gateway}})
	look := func(want bool, why string) {
		t.Helper()
		if _, reached, err := w.Look(now); err != nil || reached != want {
			t.Errorf("%s: %v, reached %v", why, err, reached)
		}
	}
	look(false, "what was heard before the change")
	look(false, "one answer")
	look(false, "the pause")
	now = now.Add(pause)
	look(false, "the second question")
	look(true, "the second answer")
	if f.asked != 2 {
		t.Errorf("asked %d times", f.asked)
	}
}

func TestS81_AGatewayThatAnswersIsNoWayWithoutItsRoute(t *testing.T) {
	f := newFakeNet(gateway)
	f.routes = nil
	w, now := NewWatch(f, []Ask{{Device: "vmk0", Kind: Gateway, Address: gateway}}), time.Now()
	for range 10 {
		now = now.Add(pause)
		if _, reached, err := w.Look(now); err != nil || reached {
			t.Fatalf("%v, reached %v", err, reached)
		}
	}
}

func TestS81_EveryGatewayHasToAnswerAndOneOfTheOthers(t *testing.T) {
	g := func(a netip.Addr, answered bool) Ask {
		return Ask{Device: "vmk0", Kind: Gateway, Address: a, Answered: answered}
	}
	n := func(device string, answered bool) Ask {
		return Ask{Device: device, Kind: Neighbour, Address: other, Answered: answered}
	}
	for _, c := range []struct {
		asks []Ask
		want int
	}{
		{[]Ask{g(gateway, true), g(other, false)}, 1}, {[]Ask{g(gateway, true), g(other, true)}, 0},
		{[]Ask{n("vmk0", false), n("vmk0", true)}, 0}, {[]Ask{n("vmk0", false), n("vmk0", false)}, 2},
		{[]Ask{n("vmk0", true), n("vmk1", false)}, 1},
	} {
		if got := Missing(c.asks); len(got) != c.want {
			t.Errorf("%v: %v are missing, want %d", c.asks, got, c.want)
		}
	}
}

// A gateway also answers a host that no longer has an address in its network: such an answer does not show that the
// host is reachable.
func TestS81_AnAnswerToAnotherNetworkIsNoWay(t *testing.T) {
	f := newFakeNet(gateway)
	w, now := NewWatch(f, f.before(t, true)), time.Now()
	f.prefix = "198.51.100.10/24"
	for range 10 {
		now = now.Add(pause)
		if _, reached, err := w.Look(now); err != nil || reached {
			t.Fatalf("%v, reached %v", err, reached)
		}
	}
}
