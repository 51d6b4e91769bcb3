package live

import (
	"net"
	"testing"

	"heddle/internal/dataplane"
	"heddle/internal/test/testkit"
)

// A watcher records the times of its sender's frames, and of no others, by the clock of dataplane.Instant.
func TestAWatcherNotesWhenItsSendersFramesArrive(t *testing.T) {
	testkit.Weigh(t, 3)
	ns := testkit.NS(t, "watch")
	testkit.Tool(t, "ip")
	if _, err := ns.Output("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "far"); err != nil {
		t.Fatal(err)
	}
	mac := net.HardwareAddr{2, 0, 0xfe, 1, 2, 3}
	w, err := watch(ns, mac)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	frame := func(from net.HardwareAddr) {
		f := append(append([]byte{2, 0, 0, 0, 0, 1}, from...), make([]byte, 48)...)
		if got, _, err := w.program.Test(f); err != nil || int32(got) != -1 {
			t.Fatalf("verdict %d, %v", int32(got), err)
		}
	}
	before, err := dataplane.Monotonic()
	if err != nil {
		t.Fatal(err)
	}
	frame(mac)
	frame(net.HardwareAddr{2, 0, 0xfe, 1, 2, 4})
	frame(mac)
	after, err := dataplane.Monotonic()
	if err != nil {
		t.Fatal(err)
	}
	times, err := w.since(0)
	if err != nil || len(times) != 2 {
		t.Fatalf("arrivals %v, %v", times, err)
	}
	for _, at := range times {
		if at < before || at > after {
			t.Errorf("arrived at %d, between %d and %d (%v)", at, before, after, times)
		}
	}
	if later, err := w.since(1); err != nil || len(later) != 1 || later[0] != times[1] {
		t.Errorf("behind the first: %v, %v", later, err)
	}
}
