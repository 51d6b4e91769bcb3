package memory

import (
	"context"
	"log/slog"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// A burst of work, such as a start with a thousand ports, takes several times the memory that the agent needs
// afterwards. Go gives that back slowly, and hardly ever in a process that does next to nothing: then the garbage
// collector does not run either. So an agent at rest does it itself.

const (
	// every is how often the heap is looked at. What a burst took is given back after twice that at most: the
	// devices are read anew every minute.
	every = 5 * time.Second
	// restingBytes is how much an agent allocates at most between two looks when it is at rest.
	restingBytes = 2 << 20
	// spareBytes is how much has to be to spare for giving it back: that takes a garbage collection.
	spareBytes = 3 << 20
	// restingGrowth is by how many percent the heap of an agent at rest grows before garbage is collected, where it
	// would be more otherwise: short work then takes little memory, and that it is collected more often takes no time
	// to speak of.
	restingGrowth = 25
)

// collector sets how much garbage there may be before it is collected.
type collector struct {
	usual   int
	resting bool
}

// newCollector finds out how much is usual (GOGC).
func newCollector() collector {
	usual := debug.SetGCPercent(100)
	debug.SetGCPercent(usual)
	return collector{usual: usual}
}

// rests has it collected early while the agent is at rest, and as usual while it works. Where it is never collected,
// somebody wanted that.
func (c *collector) rests(is bool) {
	if is == c.resting || c.usual <= restingGrowth {
		return
	}
	if c.resting = is; is {
		debug.SetGCPercent(restingGrowth)
	} else {
		debug.SetGCPercent(c.usual)
	}
}

// heapUse is how the heap is used at an instant, in bytes.
type heapUse struct {
	allocated uint64 // since the process began
	spare     uint64 // neither in use nor given back, with what was allocated since the last collection
}

// rest watches for times in which the agent does next to nothing.
type rest struct {
	before heapUse
	worked bool // since memory was given back last
}

// toSpare reports whether memory is to be given back now: not in the middle of work that needs it again at once, but
// once after it, whatever the last collection found, as that may have been in the middle.
func (r *rest) toSpare(now heapUse) bool {
	atRest := now.allocated-r.before.allocated <= restingBytes
	r.before = now
	if !atRest {
		r.worked = true
		return false
	}
	spare := r.worked || now.spare >= spareBytes
	r.worked = false
	return spare
}

// useOfHeap is how the heap is used now. It takes no time to speak of.
func useOfHeap() heapUse {
	read := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(read)
	value := func(i int) uint64 {
		if read[i].Value.Kind() != metrics.KindUint64 {
			return 0 // another Go does not know it
		}
		return read[i].Value.Uint64()
	}
	u := heapUse{allocated: value(0), spare: value(1)}
	if objects, live := value(2), value(3); objects > live {
		u.spare += objects - live
	}
	return u
}

// Release gives back memory that the agent does not need any more, until ctx ends; and then pages of its program.
func Release(ctx context.Context, log *slog.Logger) { release(ctx, every, releasePages, log) }

func release(ctx context.Context, every time.Duration, pages func() error, log *slog.Logger) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	gc := newCollector()
	defer gc.rests(false)
	for r := (rest{useOfHeap(), true}); ; { // a start is work
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if r.toSpare(useOfHeap()) {
			debug.FreeOSMemory()
			gc.rests(true)
			if err := pages(); err != nil {
				log.Debug("the pages of the program stay mapped", "err", err)
			}
		} else if r.worked {
			gc.rests(false)
		}
	}
}
