package model_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"heddle/internal/overlay"
	"heddle/internal/plan"
)

// solicits is a solicitation by station n, which has address n, for address 9; to nil for the group.
func solicits(n byte, from netip.Addr, to *plan.MAC) []byte {
	destination, group := plan.MAC{0x33, 0x33, 0xff, 0, 0, 9}, addr("ff02::1:ff00:9")
	if to != nil {
		destination, group = *to, addr("fd00::9")
	}
	mac := station4(n)
	return slices.Concat(destination[:], mac[:], []byte{0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, 58, 255}, from.AsSlice(),
		group.AsSlice(), []byte{135, 0, 0, 0, 0, 0, 0, 0}, addr("fd00::9").AsSlice(), []byte{1, 1}, mac[:])
}

// advertises is station 9's own word that it has address 9.
func advertises() []byte {
	mac := station4(9)
	return slices.Concat([]byte{0x33, 0x33, 0, 0, 0, 1}, mac[:], []byte{0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, 58, 255},
		addr("fd00::9").AsSlice(), addr("ff02::1").AsSlice(), []byte{136, 0, 0, 0, 0x20, 0, 0, 0},
		addr("fd00::9").AsSlice(), []byte{2, 1}, mac[:])
}

// TestS194_WhoHasAnAddressAnewTellsAll: the first question to all of a station since its address is its own passes
// to all hosts although its own host could answer it, and the next one is answered.
func TestS194_WhoHasAnAddressAnewTellsAll(t *testing.T) {
	told := func(k *talk, at string, mac plan.MAC) {
		k.tunnel.Bind(false, []overlay.Binding{{Address: overlay.Address{VNI: 10, IP: addr(at)}, MAC: mac}}, nil, k.now)
	}
	nine := station4(9)
	for _, c := range []struct {
		name   string
		before func(k *talk) // what was heard of the address of station 2
		passes bool
	}{
		{"nobody had the address", func(*talk) {}, true},
		{"it had the address", func(k *talk) { k.here(arp(2, nil, 1, "10.0.0.2", "10.0.0.2")) }, false},
		{"a guest of this host had it", func(k *talk) { k.here(arp(3, nil, 1, "10.0.0.2", "10.0.0.2")) }, true},
		{"a guest elsewhere had it", func(k *talk) { k.there(arp(3, nil, 1, "10.0.0.2", "10.0.0.2")) }, true},
		{"the controllers said that another one has it", func(k *talk) { told(k, "10.0.0.2", station4(3)) }, true},
		{"they have said so since", func(k *talk) {
			k.here(arp(2, nil, 1, "10.0.0.2", "10.0.0.2"))
			k.now += time.Second
			told(k, "10.0.0.2", station4(3))
			k.now += time.Second
		}, true},
		{"it has told one station alone", func(k *talk) {
			k.here(arp(3, nil, 1, "10.0.0.2", "10.0.0.2"))
			k.here(arp(2, &nine, 1, "10.0.0.2", "10.0.0.9"))
			k.here(arp(2, &nine, 2, "10.0.0.2", "10.0.0.9"))
		}, true},
		{"it has told all", func(k *talk) {
			k.here(arp(3, nil, 1, "10.0.0.2", "10.0.0.2"))
			k.here(arp(2, &nine, 1, "10.0.0.2", "10.0.0.9"))
			k.here(arp(2, nil, 1, "10.0.0.2", "10.0.0.2"))
		}, false},
		{"it has gone elsewhere and come back", func(k *talk) {
			k.here(arp(3, nil, 1, "10.0.0.2", "10.0.0.2"))
			k.here(arp(2, &nine, 1, "10.0.0.2", "10.0.0.9"))
			k.there(arp(2, nil, 1, "10.0.0.2", "10.0.0.2"))
		}, false},
		{"another one had it long ago", func(k *talk) {
			k.here(arp(3, nil, 1, "10.0.0.2", "10.0.0.2"))
			k.now += 6 * time.Minute
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newTalk(t)
			c.before(k)
			k.there(arp(9, nil, 1, "10.0.0.9", "10.0.0.9"))
			question := arp(2, nil, 1, "10.0.0.2", "10.0.0.9")
			l := k.here(question)
			if passes := l.Answer == nil; passes != c.passes || l.Question.Announces != c.passes {
				t.Errorf("the first question passes: %v, want %v: %+v", passes, c.passes, l)
			}
			if l = k.here(question); l.Answer == nil {
				t.Errorf("the second question passes: %+v", l)
			}
		})
	}
}

// TestS194_InNeighbourDiscoveryToo: a solicitation tells all hosts as a question of ARP does.
func TestS194_InNeighbourDiscoveryToo(t *testing.T) {
	k, two, nine := newTalk(t), addr("fd00::2"), station4(9)
	k.here(solicits(3, two, nil))
	k.there(advertises())
	if l := k.here(solicits(2, two, &nine)); l.Heard.Announces || l.Answer != nil {
		t.Errorf("a question to one station: %+v", l)
	}
	if l := k.here(solicits(2, two, nil)); !l.Question.Announces || l.Answer != nil {
		t.Errorf("the first question to several stations: %+v", l)
	}
	if l := k.here(solicits(2, two, nil)); l.Answer == nil {
		t.Errorf("the second one: %+v", l)
	}
}
