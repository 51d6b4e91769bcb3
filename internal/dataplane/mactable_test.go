package dataplane

import (
	"errors"
	"testing"

	"heddle/internal/abi"
	"heddle/internal/binding"
	"heddle/internal/lab/netns"
)

// The table gets the configured size when the next process starts, under traffic, and keeps its content; a table with
// more entries than the configured size keeps its size.
func TestTheMACTableGrowsAndShrinksUnderTraffic(t *testing.T) {
	dir := bpffs(t)
	host, guests, d := twoPorts(t)
	for _, p := range d.Plan.Switches[0].Ports {
		p.Policy.Learning.Enabled.V, p.Policy.Learning.Limit.V, p.Policy.ForgedTransmits.V = true, seededMACs, true
	}
	sized := func(size int, look func(*Kernel)) {
		t.Helper()
		if err := withMACTable(host, dir, d, size, look); err != nil {
			t.Fatal(err)
		}
	}
	sized(4096, func(k *Kernel) {
		if k.MACTable() != 4096 {
			t.Errorf("the table holds %d", k.MACTable())
		}
		seed(t, k)
	})
	s := startNumbered(t, guests[0], guests[1], 2000)
	counted := uint64(0)
	for _, c := range []struct{ ask, get int }{{300000, 300000}, {8192, 8192}, {100, 8192}, {0, abi.DefaultMACs}} {
		sized(c.ask, func(k *Kernel) {
			if k.MACTable() != c.get {
				t.Errorf("asked for %d, the table holds %d, want %d", c.ask, k.MACTable(), c.get)
			}
			counted = checkCarried(t, k, counted)
		})
	}
	s.finish()
}

func withMACTable(host *netns.NS, dir string, d binding.Desired, size int, look func(*Kernel)) error {
	var k *Kernel
	err := host.Do(func() (err error) {
		if k, err = Open(Options{PinDir: dir, MACTable: size}); err != nil {
			return err
		}
		return k.Apply(d)
	})
	if err == nil {
		look(k)
	}
	if k != nil {
		err = errors.Join(err, k.Close())
	}
	return err
}
