package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/state"
)

// A pause is between half of its length and all; the length doubles after each round of all controllers, up to a bound.
func TestBackoff_DoublesByRoundsUpToABound(t *testing.T) {
	lowest := func(int) int { return 0 }
	highest := func(below int) int { return below - 1 }
	long := firstPause
	low, high := newBackoff(), newBackoff()
	for round := range 10 {
		for try := range 3 {
			if got := low.next(try == 2, lowest); got != long/2 {
				t.Errorf("round %d: at least %v, want %v", round, got, long/2)
			}
			if got := high.next(try == 2, highest); got != long-1 {
				t.Errorf("round %d: at most %v, want just below %v", round, got, long)
			}
		}
		long = min(2*long, 6*time.Second)
	}
	if long != 6*time.Second {
		t.Errorf("the longest pause is %v", long)
	}
}

// dialing is the membership of a host that knows three controllers.
type dialing struct{}

func (dialing) Controllers() []string                    { return []string{"c1:1", "c2:1", "c3:1"} }
func (dialing) TLS() (*tls.Config, error)                { return &tls.Config{}, nil }
func (dialing) KeepControllers([]string) error           { return nil }
func (dialing) Request(bool) ([]byte, error)             { return nil, errors.ErrUnsupported }
func (dialing) Renewed(*controllerv1.HostIdentity) error { return errors.ErrUnsupported }

// attempts are the controllers that one host tries, and the pauses between.
type attempts struct {
	dialled []string
	pauses  []time.Duration
}

// tries runs a client that no controller answers, for that many attempts, without waiting for its pauses.
func tries(t *testing.T, most int) attempts {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var all attempts
	c := New(Options{Host: nobody{}, Membership: dialing{}, Log: slog.New(slog.DiscardHandler)})
	c.Dial = func(_ context.Context, _, address string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		all.dialled = append(all.dialled, address)
		return nil, errors.New("nobody is there")
	}
	c.wait = func(_ context.Context, pause time.Duration) bool {
		all.pauses = append(all.pauses, pause)
		return len(all.pauses) < most
	}
	c.Run(ctx)
	mu.Lock()
	defer mu.Unlock()
	return all
}

// When all controllers go away and come back, the attempts of many hosts are spread: over the controllers from the
// first attempt on, and in time over the half of each pause in which they may come. Nobody tries more often than once
// in half of the longest pause after the first rounds.
func TestBackoff_ManyHostsComeSpread(t *testing.T) {
	const hosts, most, tenths = 400, 18, 10
	var mu sync.Mutex
	var all []attempts
	var g sync.WaitGroup
	for range hosts {
		g.Go(func() {
			a := tries(t, most)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, a)
		})
	}
	g.Wait()
	first := map[string]int{}
	for _, a := range all {
		if len(a.dialled) != most || len(a.pauses) != most {
			t.Fatalf("a host dials %d times and pauses %d times, want %d", len(a.dialled), len(a.pauses), most)
		}
		first[a.dialled[0]]++
		for i := 2; i < most; i++ { // whichever is first, no two of three in a row are the same
			if d := slices.Sorted(slices.Values(a.dialled[i-2 : i+1])); len(slices.Compact(d)) != 3 {
				t.Fatalf("a host does not go round: %v", a.dialled)
			}
		}
	}
	// Each has 400/3 on average and a standard deviation below 10.
	for _, at := range (dialing{}).Controllers() {
		if first[at] < hosts/3-80 || first[at] > hosts/3+80 {
			t.Errorf("the first attempts go to %v", first)
		}
	}
	// The last pause has the longest length for all.
	var last [tenths]int
	for _, a := range all {
		for i, p := range a.pauses {
			if p < firstPause/2 || p >= longPause {
				t.Fatalf("pause %d is %v", i, p)
			}
		}
		p := a.pauses[most-1]
		if p < longPause/2 {
			t.Fatalf("the last pause is %v", p)
		}
		last[int((p-longPause/2)*tenths/(longPause/2))]++
	}
	for i, n := range last { // 40 on average with a standard deviation of 6
		if n == 0 || n > 4*hosts/tenths {
			t.Errorf("in tenth %d of the pause %d of %d hosts come: %v", i, n, hosts, last)
		}
	}
}

// nobody is a host that has nothing, and is given nothing.
type nobody struct{ Host }

func (nobody) Given(context.Context) (*state.Slice, error) { return nil, nil }

func (nobody) Report(context.Context) (*controllerv1.HostReport, error) {
	return &controllerv1.HostReport{}, nil
}
