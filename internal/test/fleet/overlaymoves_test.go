package fleet

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/test/testkit/cable"
	"heddle/internal/test/testkit/realhost"
)

// numbered are numbered frames to a guest that moves: which of them came to each host where it can be.
type numbered struct {
	f    *fleet
	mu   sync.Mutex
	came [2]map[uint64]bool
	sent uint64
	stop context.CancelFunc
	all  sync.WaitGroup
}

// number sends a frame a millisecond from an end to a MAC, which two ends may get.
func (f *fleet) number(from *cable.End, src, dst [6]byte, to ...*cable.End) *numbered {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	n := &numbered{f: f, stop: cancel, came: [2]map[uint64]bool{{}, {}}}
	watch, end := context.WithCancel(context.Background())
	f.t.Cleanup(func() { cancel(); end(); n.all.Wait() })
	for i, e := range to {
		n.all.Go(func() {
			if err := e.Watch(watch, func(frame []byte) { n.take(i, dst, frame) }); err != nil {
				f.t.Error(err)
			}
		})
	}
	n.all.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			n.mu.Lock()
			n.sent++
			payload := binary.BigEndian.AppendUint64([]byte("numbered"), n.sent)
			n.mu.Unlock()
			from.Send(cable.Frame(dst, src, 0, string(payload)))
			<-tick.C
		}
	})
	return n
}

func (n *numbered) take(at int, dst [6]byte, frame []byte) {
	if len(frame) < 30 || [6]byte(frame) != dst || string(frame[14:22]) != "numbered" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	number := binary.BigEndian.Uint64(frame[22:])
	if n.came[0][number] || n.came[1][number] {
		n.f.t.Errorf("frame %d came twice", number)
	}
	n.came[at][number] = true
}

// counts are how many frames were sent, and how many came to each host.
func (n *numbered) counts() (sent, first, second uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.sent, uint64(len(n.came[0])), uint64(len(n.came[1]))
}

// TestS100_S105_APortMovesOnAnOverlaySegment: a guest moves from one host to another while a third one's guest sends to
// it through the tunnel. Each frame comes to one of the two once, or is counted where it was dropped; the third host
// sends to the new place as soon as the controller says so.
func TestS100_S105_APortMovesOnAnOverlaySegment(t *testing.T) {
	t.Parallel()
	const vm, name = 10, "m10"
	const mostOthers = 40 // announcements, and what the guest itself sends, for which the hosts have no receiver
	f := newFleetSized(t, 3, ownConfig, "own1", "own2")
	f.routed()
	f.controller.Start()
	for n, h := range f.hosts {
		f.controller.Join(h.Host, fmt.Sprintf("esx%d", n), map[string]string{"rack": "a"})
	}
	if out := f.controller.Define(segmentText); len(out.Hosts) != 3 || len(out.Waiting) > 0 {
		t.Fatalf("the definition: %+v", out)
	}
	f.connect(2, 3, "p-web", "web")
	mac, peer := fleetMAC(0, vm), fleetMAC(2, 3)
	for n := range 2 {
		f.guests[fmt.Sprintf("%s@%d", name, n)] = f.hosts[n].QuietlyIn(fmt.Sprintf("%s-%d", name, n), name, mac)
	}
	f.mustStartVM(0, vm, name, "web", "--mac", plan.MAC(mac).String())
	f.hosts[2].Await("the third host knows where the guest is", func() bool {
		before := f.hosts[1].Counter("tunnel", "packetsInUnicast")
		probe := cable.Frame(mac, peer, 0, "where are you")
		f.guests["p-web@2"].Send(probe)
		return f.guests[name+"@0"].Await(probe, realhost.Patience/20) &&
			f.hosts[1].Counter("tunnel", "packetsInUnicast") == before
	})
	droppedBefore := f.droppedAtTunnels(2)
	n := f.number(f.guests["p-web@2"], peer, mac, f.guests[name+"@0"], f.guests[name+"@1"])
	f.hosts[0].Await("frames come to the first host", func() bool { _, got, _ := n.counts(); return got > 100 })
	f.hosts[1].must("port", "connect", name, "--incoming", "--switch", "dvs", "--port-group", "web", "--device", name,
		"--mac", plan.MAC(mac).String(), "--vm-uuid", uuid(vm), "--adapter", "net0")
	f.moves(1, name, in("copied"), "a copy is there")
	if _, err := f.hosts[0].SilencePort(t.Context(), api.PortMoveOf{Port: name}); err != nil {
		t.Fatal(err)
	}
	f.sendsAs(1, name, mac, 1)
	f.hosts[1].Await("frames come to the second host", func() bool { _, _, got := n.counts(); return got > 100 })
	f.moves(1, name, in("active"), "active")
	n.stop()
	var sent, first, second, dropped uint64
	f.hosts[0].Await("every frame has come, or was counted", func() bool {
		sent, first, second = n.counts()
		dropped = f.droppedAtTunnels(2) - droppedBefore
		return sent <= first+second+dropped
	})
	t.Logf("%d frames, one a millisecond: %d came to the first host, %d to the second, %d did not come", sent, first,
		second, sent-first-second)
	if others := first + second + dropped - sent; others > mostOthers {
		t.Errorf("the hosts dropped %d frames from tunnels, and %d frames did not come", dropped, sent-first-second)
	}
	if err := f.hosts[0].ReleaseMovedPort(t.Context(), api.PortMoveOf{Port: name}); err != nil {
		t.Error(err)
	}
}

// droppedAtTunnels is how many frames from tunnels the first hosts have dropped.
func (f *fleet) droppedAtTunnels(hosts int) (all uint64) {
	f.t.Helper()
	for n := range hosts {
		all += f.hosts[n].Counter("tunnel", "packetsInDropped")
	}
	return all
}
