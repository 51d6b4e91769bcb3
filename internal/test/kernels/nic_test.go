package kernels

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"heddle/internal/lab/netns"
	"heddle/internal/lab/qemu"
	"heddle/internal/lab/qemu/image"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// nicTests are the tests of package smoke that need a guest's network cards.
var nicTests = program{name: "nic.test", pkg: "heddle/internal/test/smoke", tests: true, tags: "guest"}

// reflect sends back what the guest sends to MAC(99) on the taps, until the test ends.
func reflect(t *testing.T, ns *netns.NS, taps ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, tap := range taps {
		e := cable.Open(t, ns, tap)
		all.Go(func() {
			if err := e.Reflect(ctx, cable.MAC(99)); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		all.Wait()
	})
}

// card is a further network card of a guest: QEMU's arguments for one on a tap of the namespace.
func card(t *testing.T, ns *netns.NS, model, tap string, number int) []string {
	t.Helper()
	if err := qemu.CreateTap(ns, tap, 1, 0); err != nil {
		t.Fatal(err)
	}
	return []string{"-netdev", fmt.Sprintf("tap,id=%s,script=no,downscript=no,vhost=off,ifname=%s", tap, tap),
		"-device", fmt.Sprintf("%s,netdev=%s,romfile=,mac=02:00:00:01:00:%02x", model, tap, number)}
}

// TestKernel_NetworkCards: an agent in a guest uses emulated cards as uplinks: virtio-net with two queues, e1000e,
// vmxnet3 (which merges segments), and bonds.
func TestKernel_NetworkCards(t *testing.T) {
	forEachKernel(t, func(t *testing.T, img *image.Image) {
		ns := testkit.NS(t, "cards")
		taps := []string{"tap0", "tap1", "tap2", "tap3", "tap4"}
		if err := qemu.CreateTap(ns, taps[0], 2, 0); err != nil {
			t.Fatal(err)
		}
		var more []string
		for i, model := range []string{"virtio-net-pci", "virtio-net-pci", "e1000e", "vmxnet3"} {
			more = append(more, card(t, ns, model, taps[i+1], i+1)...)
		}
		g := boot(t, img, qemu.Options{NetNS: ns, Tap: taps[0], Queues: 2, MemoryMB: 1024, ExtraArgs: more,
			Modules: []string{"e1000e", "vmxnet3", "bonding", "bridge"}}, heddle, nicTests)
		reflect(t, ns, taps...)
		g.env = "HEDDLE_CARDS='eth0 eth3 eth4' HEDDLE_BOND_MEMBERS='eth1 eth4'"
		g.test(nicTests, "-test.run '^TestNIC_'")
	})
}
