package meter

import (
	"sync"
	"testing"
	"time"

	"heddle/internal/flow"
)

func TestFlowsShowWhatHasAnEntry(t *testing.T) {
	w := newWorld(t, minute)
	for p := range uint16(5) {
		w.send(key(p), uint64(p)+1)
	}
	w.run(time.Second)
	seen := map[uint16]uint64{}
	w.m.Flows(func(f *Flow) bool {
		if f.Switch != "lab" || f.Point.ID.Name != "vm2" {
			t.Errorf("flow %+v", f)
		}
		seen[f.Key.SrcPort] = f.Total.Packets
		return len(seen) < 4
	})
	if len(seen) != 4 || seen[2] != 3 {
		t.Errorf("flows %v, want four", seen)
	}
}

func TestSamplerTellsRatesBetweenItsSamples(t *testing.T) {
	w := newWorld(t, minute)
	s := w.m.NewSampler()
	for i := range 10 {
		for p := range uint16(100) {
			w.send(key(p), uint64(p)*uint64(i)+1)
		}
		w.run(time.Second)
		top, n := s.Top(w.now, 3, ByPackets, func(f *Flow) bool { return f.Key.SrcPort != 99 })
		if n != 99 || len(top) != 3 {
			t.Fatalf("%d flows, %d on top", n, len(top))
		}
		if i == 0 {
			continue // means since the flows began
		}
		for j, f := range top {
			want := float64(98-j)*float64(i) + 1
			if f.Key.SrcPort != uint16(98-j) || f.PacketRate != want || f.BitRate != want*114*8 {
				t.Errorf("sample %d, place %d: port %d with %v packets and %v bits a second, want %v packets", i, j,
					f.Key.SrcPort, f.PacketRate, f.BitRate, want)
			}
		}
	}
}

func TestSubscriptionBringsRecordsAndCountsWhatHasNoRoom(t *testing.T) {
	w := newWorld(t, minute)
	s := w.m.Subscribe(1)
	for range 2 {
		w.send(key(1), 2)
		w.run(20 * time.Second)
	}
	told := <-s.Records()
	if told.Switch != "lab" || len(told.Records) != 1 || told.Records[0].Total.Packets != 2 ||
		told.Points[2].ID.Name != "vm2" || s.Lost() != 1 {
		t.Errorf("told %+v, %d lost", told, s.Lost())
	}
	s.Close()
	w.send(key(1), 2)
	w.run(20 * time.Second)
	select {
	case told := <-s.Records():
		t.Errorf("told %+v after the end", told)
	default:
	}
}

// Other goroutines may read while flows begin and end.
func TestLookingWhileFlowsComeAndGo(t *testing.T) {
	w := newWorld(t, Settings{ActiveTimeout: 10 * time.Second, IdleTimeout: 3 * time.Second, MaxFlows: 5000,
		Biflow: true})
	stop := make(chan struct{})
	var looking sync.WaitGroup
	sub := w.m.Subscribe(1)
	for range 2 {
		looking.Add(1)
		go func() {
			defer looking.Done()
			s := w.m.NewSampler()
			for {
				select {
				case <-stop:
					return
				case <-sub.Records():
				default:
				}
				w.m.Flows(func(f *Flow) bool {
					if f.Total.Packets == 0 || f.Key.EtherType != flow.IPv4 {
						t.Errorf("flow %+v", f)
					}
					return true
				})
				now, err := Now()
				if err != nil {
					t.Error(err)
				}
				s.Top(now, 5, ByBits, nil)
				w.m.Statistics()
			}
		}()
	}
	for i := range 60 {
		for p := range uint16(200) {
			w.send(key(p+uint16(i*50)), 1)
		}
		w.run(time.Second)
	}
	close(stop)
	looking.Wait()
}
