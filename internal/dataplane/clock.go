package dataplane

import (
	"fmt"
	"time"

	"github.com/cilium/ebpf"
)

// jiffiesPerSecond finds the kernel's HZ by reading both clocks twice; user space is told only a fixed 100.
func jiffiesPerSecond(spec *ebpf.CollectionSpec) (uint64, error) {
	p, err := ebpf.NewProgram(spec.Programs["heddle_clocks"])
	if err != nil {
		return 0, explainLoad(err)
	}
	defer p.Close()
	first, err := readClocks(p)
	if err != nil {
		return 0, err
	}
	timer := time.NewTimer(50 * time.Millisecond)
	defer timer.Stop()
	<-timer.C
	second, err := readClocks(p)
	if err != nil {
		return 0, err
	}
	rate := float64(second.Ticks-first.Ticks) * 1e9 / float64(second.Ns-first.Ns)
	best := uint64(0)
	for _, hz := range []uint64{100, 250, 300, 1000} {
		if best == 0 || distance(rate, hz) < distance(rate, best) {
			best = hz
		}
	}
	return best, nil
}

func distance(rate float64, hz uint64) float64 {
	d := rate/float64(hz) - 1
	if d < 0 {
		return -d
	}
	return d
}

type clocks struct{ Ns, Ticks uint64 }

func readClocks(p *ebpf.Program) (clocks, error) {
	var out [1]clocks
	in := [1]clocks{}
	if _, err := p.Run(&ebpf.RunOptions{Context: bytesOf(in[:]), ContextOut: bytesOf(out[:])}); err != nil {
		return clocks{}, fmt.Errorf("read the kernel's clocks: %w", err)
	}
	return out[0], nil
}

// wallClock reads the kernel's clock that flows are stamped with, beside the host's: milliseconds since 1970 of an instant that many
// ticks, of which the lower half is given, have come to.
func (k *Kernel) wallClock() (func(uint32) int64, error) {
	c, err := readClocks(k.objects.HeddleClocks)
	if err != nil {
		return nil, err
	}
	now, ticks := time.Now().UnixMilli(), uint32(c.Ticks)
	return func(at uint32) int64 { return now - int64(int32(ticks-at))*1000/int64(k.hz) }, nil
}

// ticksAsTime takes ticks for times.
func ticksAsTime() (func(uint32) int64, error) {
	return func(at uint32) int64 { return int64(at) }, nil
}

// ticks is the kernel's clock that entries are stamped with.
func (k *Kernel) ticks() (uint64, error) {
	c, err := readClocks(k.objects.HeddleClocks)
	return c.Ticks, err
}
