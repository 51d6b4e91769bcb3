package kerneltest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"heddle/internal/abi"
)

// storm sends a frame as fast as it goes from so many threads at once.
func (h *host) storm(at, header string, threads, each int) {
	h.t.Helper()
	frame := append(wire(header+" [0]"), make([]byte, 46)...)
	var wg sync.WaitGroup
	wrong := make([]error, threads)
	for i := range threads {
		wg.Go(func() {
			for range each {
				if wrong[i] = h.ends[at].inject(frame); wrong[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	for _, err := range wrong {
		if err != nil {
			h.t.Fatal(err)
		}
	}
	h.await("every frame is switched", func() bool { return h.received(at) == uint64(threads*each) })
}

// A storm is bounded by the policy, whatever the sender's speed and on however many CPUs; what is above the bound is
// counted at the sender, and nobody receives it.
func TestD27_AStormIsBounded(t *testing.T) {
	const config = `
  portGroups:
  - {name: limited, stormControl: {broadcast: 500, multicast: 500, unknownUnicast: 500, burst: 100ms}}
  - {name: nest, security: {macLearning: {enabled: true}}}`
	const rate, burst = 500, 50 // frames: in a second, and at once
	// frames: the kernel's clock stands still while a hypervisor keeps a CPU from running, and then catches up
	const lag = rate / 2
	const sent = 20_000
	for _, dst := range []string{"all", "333300000001", "nest9"} {
		for _, threads := range []int{1, 4} {
			t.Run(fmt.Sprint(dst, " from ", threads), func(t *testing.T) {
				h := newHost(t, config, "vm1 limited", "vm2 nest", "tap3 nest")
				received := h.gather() // beside the storm: a slow machine's lasts longer than a tap's queue has room
				began := time.Now()
				h.storm("vm1", dst+" vm1 0806", threads, sent/threads)
				most := burst + uint64(rate*time.Since(began).Seconds()) + lag
				c := h.counters()["vm1"]
				if refused := c.Drops[reason("storm-control")]; c.Delivered < burst || c.Delivered > most ||
					c.Delivered+refused != sent {
					t.Errorf("%d frames passed and %d of %d were refused; at least %d and at most %d may pass",
						c.Delivered, refused, sent, burst, most)
				}
				for name, got := range received() {
					if uint64(len(got)) != c.Delivered || name == "vm1" {
						t.Errorf("%s received %d frames, %d passed", name, len(got), c.Delivered)
					}
				}
			})
		}
	}
}

// A dry run finds what the port has spent, says what would become of the next frame, and spends nothing of it.
func TestD27_ADryRunSpendsNothing(t *testing.T) {
	h := newHost(t, "  portGroups: [{name: limited, stormControl: {broadcast: 2, burst: 2s}}]", "vm1 limited",
		"vm2 limited")
	frame := append(wire("all vm1 0806 [0]"), make([]byte, 46)...)
	outcomes := func() (list []string) {
		h.t.Helper()
		s, err := h.k.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		run, err := s.DryRun()
		if err != nil {
			t.Fatal(err)
		}
		defer run.Close()
		for range 5 {
			r, err := run.Frame(port("vm1"), frame)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, r.Reason.String())
		}
		return list
	}
	fresh := []string{"none", "none", "none", "none", "storm-control"}
	for range 2 {
		if got := outcomes(); !slices.Equal(got, fresh) {
			t.Errorf("before a frame was sent: %v, want %v", got, fresh)
		}
	}
	for range 100 { // so many in so little time that none of the four is left, however slow the machine
		if err := h.ends["vm1"].inject(frame); err != nil {
			t.Fatal(err)
		}
	}
	h.await("one is refused", func() bool { return h.counters()["vm1"].Drops[reason("storm-control")] > 0 })
	s, err := h.k.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Spent) != 1 || s.Spent[0].Port != port("vm1") || s.Spent[0].Class != abi.ClassBroadcast ||
		s.Spent[0].Billionths < 2e9 || s.Spent[0].Billionths > 4e9 || s.Spent[0].At > s.Now {
		t.Errorf("spent %+v at %v", s.Spent, s.Now)
	}
}
