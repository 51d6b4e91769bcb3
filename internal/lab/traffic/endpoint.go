package traffic

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/lab/netns"
)

// Endpoint says where one end of a measurement runs.
type Endpoint struct {
	// NS is the network namespace; nil = the caller's.
	NS *netns.NS
	// CPUs are those the measuring thread may use; empty = all.
	CPUs []int
}

// run calls f on a locked thread in the endpoint's namespace and on its CPUs, and puts the thread back afterwards.
func (e Endpoint) run(f func() error) error {
	pinned := func() error {
		if len(e.CPUs) == 0 {
			return f()
		}
		restore, err := pin(e.CPUs)
		if err != nil {
			return err
		}
		defer restore()
		return f()
	}
	if e.NS != nil {
		return e.NS.Do(pinned)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return pinned()
}

// pin binds the calling thread to the CPUs until restore is called.
func pin(cpus []int) (restore func(), err error) {
	var before, want unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, fmt.Errorf("read CPU affinity: %w", err)
	}
	for _, c := range cpus {
		want.Set(c)
	}
	if err := unix.SchedSetaffinity(0, &want); err != nil {
		return nil, fmt.Errorf("pin to CPUs %v of %d: %w", cpus, runtime.NumCPU(), err)
	}
	return func() {
		if unix.SchedSetaffinity(0, &before) != nil {
			runtime.LockOSThread() // an unbalanced lock: the runtime discards the thread with its goroutine
		}
	}, nil
}

// halt ends a measuring loop. It is one atomic word; reading it costs less per packet than checking a context.
type halt struct{ flag atomic.Bool }

func (h *halt) asked() bool { return h.flag.Load() }

// haltWith returns a halt that is set when the context ends; release forgets the context.
func haltWith(ctx context.Context) (h *halt, release func() bool) {
	h = &halt{}
	return h, context.AfterFunc(ctx, func() { h.flag.Store(true) })
}

// threadCPU is the CPU time the calling thread has used.
func threadCPU() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// phase is the phase of a measurement.
type phase uint8

const (
	warming phase = iota
	measuring
	over
)

// clock steps a measurement through its phases. Each step reads the time once.
type clock struct {
	start, from time.Time
	duration    time.Duration // 0: without end
	halt        *halt
	phase       phase
	cpuAtStart  time.Duration
	// Seconds and CPU of the measured interval, valid when over.
	seconds, cpu float64
}

// newClock starts a measurement; if its interval begins at a given time, it waits until the warm-up before that.
func newClock(h *halt, load Load) *clock {
	if !load.Begin.IsZero() {
		fineTimer()
		for left := time.Until(load.Begin) - load.Warmup; left > 0 &&
			!h.asked(); left = time.Until(load.Begin) - load.Warmup {
			nap(min(left, pollInterval))
		}
		return &clock{start: time.Now(), from: load.Begin, duration: load.Duration, halt: h}
	}
	now := time.Now()
	return &clock{start: now, from: now.Add(load.Warmup), duration: load.Duration, halt: h}
}

// step enters the phase of the given time and returns whether it has just changed.
func (c *clock) step(now time.Time) (changed bool) {
	switch {
	case c.phase == over:
		return false
	case c.phase == warming && !c.halt.asked() && !now.Before(c.from):
		c.phase, c.from, c.cpuAtStart = measuring, now, threadCPU()
		return true
	case c.halt.asked() || c.phase == measuring && c.duration > 0 && now.Sub(c.from) >= c.duration:
		if c.phase == measuring {
			c.seconds, c.cpu = now.Sub(c.from).Seconds(), (threadCPU() - c.cpuAtStart).Seconds()
		}
		c.phase = over
		return true
	}
	return false
}

// per divides a count by the measured interval.
func (c *clock) per(n uint64) float64 {
	if c.seconds == 0 {
		return 0
	}
	return float64(n) / c.seconds
}
