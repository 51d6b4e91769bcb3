package model_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"heddle/internal/abi"
	"heddle/internal/model"
	"heddle/internal/overlay"
	"heddle/internal/plan"
)

// talk is a tunnel and the time at which the next frame passes.
type talk struct {
	*testing.T
	tunnel *model.Crossing
	now    time.Duration
}

func newTalk(t *testing.T) *talk {
	c := crossing(t)
	sw := crossingPlan(t).Switches[0]
	k := &talk{t, model.NewCrossing(sw, plan.Fact{Up: true, MTU: 1600, Endpoints: c.Own()}, overlay.Reach{
		Endpoints: []overlay.Endpoint{{Address: addr("198.51.100.2"), Host: "host2"}},
		Segments:  []overlay.Segment{{VNI: 10, Members: []netip.Addr{addr("198.51.100.2")}}}}), time.Minute}
	k.here(arp(1, nil, 1, "10.0.0.1", "10.0.0.1")) // the first question of who has not would pass (S194)
	return k
}

func station4(n byte) plan.MAC { return plan.MAC{2, 0, 0, 0, 9, n} }

// arp is a frame of ARP from a station; to nil for all.
func arp(from byte, to *plan.MAC, operation byte, sender, target string) []byte {
	all, mac := plan.MAC{255, 255, 255, 255, 255, 255}, station4(from)
	if to != nil {
		all = *to
	}
	return slices.Concat(all[:], mac[:], []byte{8, 6, 0, 1, 8, 0, 6, 4, 0, operation}, mac[:], addr(sender).AsSlice(),
		make([]byte, 6), addr(target).AsSlice())
}

// here and there are frames of this host's guests, and of the other one's.
func (k *talk) here(frame []byte) model.Left {
	return k.tunnel.Leave(plan.PortID{Switch: "s", Name: "a"}, 10, frame, k.now)
}

func (k *talk) there(frame []byte) {
	k.Helper()
	if a := k.tunnel.Arrive(addr("198.51.100.2"), 10, frame, k.now); a.Reason != abi.ReasonNone {
		k.Fatal(a.Reason)
	}
}

// asks: station 1 of this host asks for 10.0.0.9. want is who is answered to have it, 0 where others are asked.
func (k *talk) asks(want byte, why string) {
	k.Helper()
	l := k.here(arp(1, nil, 1, "10.0.0.1", "10.0.0.9"))
	switch {
	case want == 0 && l.Answer != nil:
		k.Errorf("%s: answered with %s", why, plan.MAC(l.Answer[6:12]))
	case want == 0 && (len(l.Outers) != 1 || l.Outers[0].Reason != abi.ReasonNone):
		k.Errorf("%s: others are not asked: %+v", why, l.Outers)
	case want != 0 && l.Answer == nil:
		k.Errorf("%s: others are asked", why)
	case want != 0 && plan.MAC(l.Answer[6:12]) != station4(want):
		k.Errorf("%s: answered with %s", why, plan.MAC(l.Answer[6:12]))
	}
}

// TestS154_WhoTakesAnAddressOverIsAskedFirst: an announcement alone takes no address from an owner that was heard.
func TestS154_WhoTakesAnAddressOverIsAskedFirst(t *testing.T) {
	asker := station4(1)
	owned := func(t *testing.T) *talk {
		k := newTalk(t)
		k.there(arp(9, nil, 1, "10.0.0.9", "10.0.0.9"))
		k.asks(9, "the owner was heard")
		k.now += 3 * time.Second
		k.there(arp(8, nil, 2, "10.0.0.9", "10.0.0.9"))
		return k
	}
	t.Run("the owner answers", func(t *testing.T) {
		k := owned(t)
		k.now += 8 * time.Second
		k.asks(0, "it was announced by another one")
		k.there(arp(9, &asker, 2, "10.0.0.9", "10.0.0.1"))
		k.now += 61 * time.Second
		k.asks(9, "the owner has answered")
	})
	t.Run("the new one answers", func(t *testing.T) {
		k := owned(t)
		k.there(arp(8, &asker, 2, "10.0.0.9", "10.0.0.1"))
		k.asks(0, "an answer without a question")
		k.there(arp(8, &asker, 2, "10.0.0.9", "10.0.0.1"))
		k.asks(8, "the new owner has answered")
	})
	t.Run("nobody answers", func(t *testing.T) {
		k := owned(t)
		k.now += time.Minute
		k.asks(0, "nobody was asked")
		k.now += 2 * time.Second
		k.asks(0, "an answer may still come")
		k.now += time.Second
		k.asks(8, "the former owner kept silent")
	})
	t.Run("both answer", func(t *testing.T) {
		k := owned(t)
		k.asks(0, "it was announced by another one")
		k.there(arp(8, &asker, 2, "10.0.0.9", "10.0.0.1"))
		k.there(arp(9, &asker, 2, "10.0.0.9", "10.0.0.1"))
		k.asks(0, "both claim it")
	})
}

// TestS154_AnOwnerOfThisHostIsNeverSilent: what it answers other ports of its host does not pass the tunnel.
func TestS154_AnOwnerOfThisHostIsNeverSilent(t *testing.T) {
	k := newTalk(t)
	k.here(arp(9, nil, 1, "10.0.0.9", "10.0.0.9"))
	k.now += 3 * time.Second
	k.there(arp(8, nil, 2, "10.0.0.9", "10.0.0.9"))
	for range 10 {
		k.now += 5 * time.Second
		k.asks(0, "the owner is behind a port of this host")
	}
}

// TestS154_ToldOwnersAreOwners: what the controllers have told is not taken over by one announcement either.
func TestS154_ToldOwnersAreOwners(t *testing.T) {
	k := newTalk(t)
	at := overlay.Address{VNI: 10, IP: addr("10.0.0.9")}
	k.tunnel.Bind(false, []overlay.Binding{{Address: at, MAC: station4(9), Age: time.Second}}, nil, k.now)
	k.asks(9, "the controllers say so")
	k.there(arp(8, nil, 2, "10.0.0.9", "10.0.0.9"))
	k.asks(0, "it was announced by another one")
}

// TestS154_AProbeAsksTheOwner: who is about to take an address has others asked, until the owner has answered.
func TestS154_AProbeAsksTheOwner(t *testing.T) {
	prober, asker := station4(8), station4(1)
	for _, answers := range []bool{true, false} {
		k := newTalk(t)
		k.there(arp(9, nil, 1, "10.0.0.9", "10.0.0.9"))
		k.there(arp(8, nil, 1, "0.0.0.0", "10.0.0.9"))
		if answers {
			k.there(arp(9, &prober, 2, "10.0.0.9", "0.0.0.0"))
			k.asks(9, "the owner has answered the probe")
			continue
		}
		k.now += time.Minute
		k.asks(0, "the owner has not answered the probe")
		k.now += time.Minute
		k.asks(0, "nor the question")
		k.there(arp(8, &asker, 2, "10.0.0.9", "10.0.0.1"))
		k.asks(8, "who has probed it has taken it")
	}
}

// TestS159_WhoAsksAgainHasAllAsked: an owner that has gone without a word does not stay the answer.
func TestS159_WhoAsksAgainHasAllAsked(t *testing.T) {
	asker := station4(1)
	for _, here := range []bool{false, true} {
		k := newTalk(t)
		announce := arp(9, nil, 1, "10.0.0.9", "10.0.0.9")
		if here {
			k.here(announce)
		} else {
			k.there(announce)
			k.asks(9, "the owner was heard")
			k.now += 400 * time.Millisecond
			k.asks(9, "too early to mean anything")
		}
		if here {
			k.here(arp(1, nil, 1, "10.0.0.1", "10.0.0.9")) // the owner on this host is asked
		}
		k.now += time.Second
		k.asks(0, "the asker has asked again")
		k.there(arp(8, &asker, 2, "10.0.0.9", "10.0.0.1"))
		k.now += time.Second
		if here { // it may have answered as well: the tunnel does not hear that
			k.asks(0, "another one has answered, while the owner was on this host")
			k.there(arp(8, &asker, 2, "10.0.0.9", "10.0.0.1"))
		}
		k.asks(8, "another one has answered")
		k.now += 61 * time.Second
		k.asks(8, "long after the answer")
	}
}

// TestS154_ASweepSilencesNobody: of the new addresses of one MAC in a second, a few are believed.
func TestS154_ASweepSilencesNobody(t *testing.T) {
	k := newTalk(t)
	for n := range byte(250) {
		a := netip.AddrFrom4([4]byte{10, 0, 1, n}).String()
		k.there(arp(8, nil, 2, a, a))
	}
	answered := 0
	for n := range byte(250) {
		a := netip.AddrFrom4([4]byte{10, 0, 1, n}).String()
		if l := k.here(arp(1, nil, 1, "10.0.0.1", a)); l.Answer != nil {
			answered++
		}
	}
	if answered != abi.SurePerSecond {
		t.Errorf("%d of 250 questions are answered, want %d", answered, abi.SurePerSecond)
	}
}

// TestS154_AVirtualAddressIsNotContested: its owners announce themselves, again and again.
func TestS154_AVirtualAddressIsNotContested(t *testing.T) {
	k, asker := newTalk(t), station4(1)
	for n := range 10 {
		owner := byte(8 + n%2)
		k.now += 10 * time.Second
		k.there(arp(owner, nil, 1, "10.0.0.9", "10.0.0.9"))
		k.now += 3 * time.Second
		if n > 0 {
			k.asks(0, "it has just been taken over")
		}
		k.there(arp(owner, &asker, 2, "10.0.0.9", "10.0.0.1"))
		k.now += time.Second
		k.asks(owner, "the owner has answered")
	}
}

// TestS156_APathTakesWhatItTakes: what does not fit the path to the other host is refused, and the sender is told.
func TestS156_APathTakesWhatItTakes(t *testing.T) {
	sw, own := crossingPlan(t).Switches[0], []netip.Addr{addr("192.0.2.1")}
	far := addr("198.51.100.2")
	for _, c := range []struct{ device, path, room int }{
		{1600, 0, 1550}, {1600, 1500, 1450}, {1500, 9000, 1450}, {1600, 1600, 1550}, {1600, 40, 1},
	} {
		tunnel := model.NewCrossing(sw, plan.Fact{Up: true, MTU: c.device, Endpoints: own}, overlay.Reach{
			Endpoints: []overlay.Endpoint{{Address: far, Host: "host2", MTU: c.path}},
			Segments:  []overlay.Segment{{VNI: 10, Members: []netip.Addr{far}}}})
		for length, want := range map[int]abi.Reason{c.room: abi.ReasonNone, c.room + 1: abi.ReasonTunnelMTU} {
			l := tunnel.Leave(plan.PortID{Switch: "s", Name: "a"}, 10, make14(length), time.Second)
			if len(l.Outers) != 1 || l.Outers[0].Reason != want {
				t.Errorf("%+v: %d bytes: %+v, want %s", c, length, l.Outers, want)
			}
		}
	}
}

// make14 is a frame with that many bytes of layer 3 that are no packet.
func make14(length int) []byte {
	return slices.Concat([]byte{2, 0, 0, 0, 2, 9, 2, 0, 0, 0, 0, 1, 0x88, 0xb5}, make([]byte, length))
}
