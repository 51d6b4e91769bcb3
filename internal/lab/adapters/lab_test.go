package adapters

import (
	"context"
	"testing"
	"time"

	"heddle/internal/lab/qemu"
	"heddle/internal/lab/qemu/image"
	"heddle/internal/test/testkit"
)

// A guest's offloads decide how large the frames are that the switch takes: whole segments, or one packet each.
func TestAGuestsOffloadsDecideWhatAFrameHolds(t *testing.T) {
	testkit.Long(t, "sends with each offload of a guest")
	testkit.Root(t)
	testkit.Weigh(t, 3)
	testkit.Tool(t, "qemu-system-x86_64")
	if _, err := image.Build(t.Context(), image.Options{Flavour: image.Host}); err != nil {
		testkit.Missing(t, "a guest image: "+err.Error())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	e := effort{adapters: []adapter{{"virtio-net", qemu.VirtioNet, 1}}, mtus: []int{1500}, rounds: 1,
		duration: 300 * time.Millisecond, warmup: 100 * time.Millisecond}
	m, err := Options{RunDir: t.TempDir(), Program: testkit.Program(t)}.runWith(ctx, e)
	if err != nil {
		t.Fatal(err)
	}
	whole, single := m.samples[setting{"virtio-net", true, 1500}], m.samples[setting{"virtio-net", false, 1500}]
	for d := range whole {
		if len(whole[d]) != 1 || len(single[d]) != 1 || whole[d][0].bitsPerSecond <= 0 ||
			single[d][0].bitsPerSecond <= 0 {
			t.Fatalf("%+v, %+v", whole, single)
		}
	}
	if got := whole[sends][0].perFrame; got < 3*1514 {
		t.Errorf("with offloads a frame of the guest had %.0f bytes", got)
	}
	if got := single[sends][0].perFrame; got > 1514 {
		t.Errorf("without offloads a frame of the guest had %.0f bytes", got)
	}
}
