package dataplane

import (
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
)

// grace waits for grace periods of the kernel, by means of a table of tables that exists for this: an update of it
// returns after one grace period (K9), even if it stores the same table again.
type grace struct {
	outer *ebpf.Map

	mu    sync.Mutex // guards what follows
	inner *ebpf.Map  // nil before the first use
}

func newGrace(m *vswitchMaps) *grace { return &grace{outer: m.Grace} }

// await returns when no run of the program that began before the call is still executing. Any goroutine may call it.
func (g *grace) await() error {
	inner, err := g.made()
	if err == nil {
		err = g.outer.Put(uint32(0), inner)
	}
	if err != nil {
		return fmt.Errorf("await grace period: %w", err)
	}
	return nil
}

func (g *grace) made() (*ebpf.Map, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inner != nil {
		return g.inner, nil
	}
	var err error
	g.inner, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	return g.inner, err
}

func (g *grace) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inner == nil {
		return nil
	}
	inner := g.inner
	g.inner = nil
	return inner.Close()
}
