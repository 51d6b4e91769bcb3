package model_test

import (
	"net/netip"
	"testing"
	"time"

	"heddle/internal/abi"
	"heddle/internal/model"
	"heddle/internal/overlay"
)

// heard is what the tunnel has heard of 10.0.0.9.
func (k *talk) heard() model.Heard {
	return k.tunnel.Tables().Heard[overlay.Address{VNI: 10, IP: addr("10.0.0.9")}]
}

// TestS154_AProberDoesNotAnswerItself: a probe asks who has the address, and its sender's own answer right behind it
// makes it no owner. A question of a guest counts at once, though a probe has passed just before.
func TestS154_AProberDoesNotAnswerItself(t *testing.T) {
	asker := station4(1)
	probed := func() *talk {
		k := newTalk(t)
		k.there(arp(9, nil, 1, "10.0.0.9", "10.0.0.9"))
		k.asks(9, "the owner was heard")
		k.there(arp(8, nil, 1, "0.0.0.0", "10.0.0.9"))
		return k
	}
	k := probed()
	k.there(arp(8, &asker, 2, "10.0.0.9", "10.0.0.1"))
	if h := k.heard(); !h.Unverified {
		t.Errorf("the prober has answered its own probe and is believed: %+v", h)
	}
	k.asks(0, "the prober has answered its own probe")
	k = probed()
	k.asks(0, "a probe is in doubt of the owner")
	k.there(arp(8, &asker, 2, "10.0.0.9", "10.0.0.1"))
	k.asks(8, "it has answered the question")
}

// TestS154_AProbeOnTheOwnersHostDoubtsNothing: both are behind ports of this host, where the owner hears the probe.
func TestS154_AProbeOnTheOwnersHostDoubtsNothing(t *testing.T) {
	k := newTalk(t)
	k.here(arp(9, nil, 1, "10.0.0.9", "10.0.0.9"))
	k.here(arp(8, nil, 1, "0.0.0.0", "10.0.0.9"))
	if h := k.heard(); h.Unverified {
		t.Errorf("a probe of the same host has the owner in doubt: %+v", h)
	}
	k.there(arp(8, nil, 1, "0.0.0.0", "10.0.0.9"))
	if h := k.heard(); !h.Unverified {
		t.Errorf("a probe of another host does not have the owner in doubt: %+v", h)
	}
}

// TestS154_ADoubtEnds: an owner that goes on announcing itself is sure again when its hold is over, also if guests
// ask for it meanwhile and its answers do not pass the tunnel.
func TestS154_ADoubtEnds(t *testing.T) {
	k := newTalk(t)
	k.here(arp(9, nil, 1, "10.0.0.9", "10.0.0.9"))
	k.there(arp(8, nil, 1, "0.0.0.0", "10.0.0.9"))
	begun := k.now
	for k.now-begun < 5*time.Minute {
		k.asks(0, "the owner is in doubt")
		k.now += 50 * time.Second
		k.here(arp(9, nil, 1, "10.0.0.9", "10.0.0.9"))
	}
	k.now += time.Second
	k.here(arp(9, nil, 1, "10.0.0.9", "10.0.0.9"))
	if h := k.heard(); h.Unverified {
		t.Errorf("the owner is in doubt after %s: %+v", k.now-begun, h)
	}
}

// TestS154_ProbesHaveAShare: one MAC has no more owners in doubt than it may bind addresses.
func TestS154_ProbesHaveAShare(t *testing.T) {
	k := newTalk(t)
	const owners = 3 * abi.BindingsPerSecond / 2
	address := func(n byte) string { return netip.AddrFrom4([4]byte{10, 0, 1, n}).String() }
	for n := range byte(owners) {
		k.there(arp(20+n, nil, 1, address(n), address(n)))
	}
	for n := range byte(owners) {
		k.there(arp(8, nil, 1, "0.0.0.0", address(n)))
	}
	doubted := 0
	for _, h := range k.tunnel.Tables().Heard {
		if h.Unverified {
			doubted++
		}
	}
	if doubted != abi.BindingsPerSecond {
		t.Errorf("one MAC has %d of %d owners in doubt, want %d", doubted, owners, abi.BindingsPerSecond)
	}
}

// TestS154_WhoWasToldSinceIsTheOwner: the former owner, which was heard before that, is not believed by an
// announcement.
func TestS154_WhoWasToldSinceIsTheOwner(t *testing.T) {
	asker := station4(1)
	k := newTalk(t)
	k.there(arp(9, nil, 1, "10.0.0.9", "10.0.0.9"))
	k.now += 10 * time.Second
	at := overlay.Address{VNI: 10, IP: addr("10.0.0.9")}
	k.tunnel.Bind(false, []overlay.Binding{{Address: at, MAC: station4(8), Age: time.Second}}, nil, k.now)
	k.asks(8, "the controllers have said so since")
	k.there(arp(9, nil, 1, "10.0.0.9", "10.0.0.9"))
	if h := k.heard(); !h.Unverified || h.Rival != station4(8) || h.Changed != k.now {
		t.Errorf("the former owner is believed: %+v", h)
	}
	k.asks(0, "the former owner has announced itself")
	k.there(arp(9, &asker, 2, "10.0.0.9", "10.0.0.1"))
	k.asks(9, "it has answered")
}
