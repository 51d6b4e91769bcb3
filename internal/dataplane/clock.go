package dataplane

import (
	"fmt"
	"sync"
	"time"

	"github.com/cilium/ebpf"
)

// jiffiesPerSecond finds the kernel's HZ by reading both clocks twice; user space only sees a fixed 100.
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

// tickClock computes the kernel's clock without reading it each time: the clock advances with the monotonic clock, in
// steps of a tick.
type tickClock struct {
	hz   uint64
	read func() (clocks, error)

	mu    sync.Mutex // guards what follows
	ticks uint64
	at    time.Time // when the clock had that value; zero before the first reading
}

// askEvery bounds the error from the difference between the nominal length of a tick and the real one (1/300 s is
// rounded) to less than a tick.
const askEvery = time.Minute

// askWithin is how long a reading of the clock may take if its result is to be used later: after a longer time the
// process may have been suspended before or after the reading.
const askWithin = time.Millisecond

// now returns the number of ticks that the kernel has counted, and when that was.
func (c *tickClock) now() (uint64, time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if passed := now.Sub(c.at); !c.at.IsZero() && passed < askEvery {
		return c.ticks + uint64(passed)*c.hz/uint64(time.Second), now, nil
	}
	read, err := c.read()
	if err != nil {
		return 0, now, err
	}
	c.ticks, c.at = read.Ticks, time.Now()
	if c.at.Sub(now) > askWithin {
		now, c.at = c.at, time.Time{}
		return c.ticks, now, nil
	}
	return c.ticks, c.at, nil
}

// wall returns a function that converts the kernel's clock, with which flows are stamped, to the wall clock: it takes
// the lower half of a number of ticks and returns that instant in milliseconds since 1970.
func (c *tickClock) wall() (func(uint32) int64, error) {
	ticks, now, err := c.now()
	if err != nil {
		return nil, err
	}
	ms := now.UnixMilli()
	return func(at uint32) int64 { return ms - int64(int32(uint32(ticks)-at))*1000/int64(c.hz) }, nil
}

// ticksAsTime uses ticks as times without conversion.
func ticksAsTime() (func(uint32) int64, error) {
	return func(at uint32) int64 { return int64(at) }, nil
}

// ticks returns the kernel's clock with which entries are stamped.
func (k *Kernel) ticks() (uint64, error) {
	c, err := readClocks(k.objects.HeddleClocks)
	return c.Ticks, err
}
