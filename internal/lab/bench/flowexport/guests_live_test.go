package flowexport

import (
	"context"
	"testing"
	"time"

	"heddle/internal/lab/qemu"
	"heddle/internal/lab/qemu/image"
	"heddle/internal/test/testkit"
)

// TestGuestsReceiveByEveryQueue: two guests under QEMU whose virtio-net adapters have two queues exchange packets and
// transactions; their drivers count packets in both queues, and what the hosts meter is what their ports count.
func TestGuestsReceiveByEveryQueue(t *testing.T) {
	testkit.Long(t, "sends for long; TestEveryPacketOfEveryQueueIsMetered has every queue")
	testkit.Root(t)
	testkit.Weigh(t, 3)
	testkit.Tool(t, "qemu-system-x86_64")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if _, err := image.Build(ctx, image.Options{Flavour: qemu.VirtioNet.Flavour()}); err != nil {
		testkit.Missing(t, "a guest image: "+err.Error())
	}
	o := withQueues(2)
	o.Adapters, o.Heddle = []string{string(virtio)}, testkit.Program(t)
	r, cells := rigOf(t, ctx, o)
	for _, c := range cells {
		t.Run(c.name, func(t *testing.T) {
			if err := r.meter(ctx, uni, true); err != nil {
				t.Fatal(err)
			}
			before := r.books(t)
			var s spread
			addQueues := r.underLoad(t, ctx, c)
			for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
				s = spread{}
				if err := addQueues(&s); err != nil {
					t.Fatal(err)
				}
				if n, _, _ := used(s.received); n == 2 && len(s.received) == 2 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("not every queue was used: %+v", s)
				}
			}
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
				got := r.books(t).minus(before)
				if got.metered > 0 && got.metered == got.ports {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("%d packets were metered, and the ports counted %d", got.metered, got.ports)
				}
			}
			t.Logf("%+v", s)
		})
	}
}

// underLoad runs a load between the guests of a cell until they have carried some of it. The guests run until the test
// ends; the returned function adds what their queues have carried.
func (r *rig) underLoad(t *testing.T, ctx context.Context, c cell) func(*spread) error {
	t.Helper()
	rest, err := r.wake(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rest(); err != nil {
			t.Error(err)
		}
	})
	addQueues, err := r.watchQueues(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	load, err := r.startSteady(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := load.end(); err != nil {
		t.Fatal(err)
	}
	return addQueues
}
