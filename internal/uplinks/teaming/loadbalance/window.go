package loadbalance

import "time"

// Bytes are the counted bytes of both directions. For a port, In is what it received from uplinks and Out what it sent
// to them.
type Bytes struct{ In, Out uint64 }

// Rate is a mean over a window, bits per second.
type Rate struct{ In, Out float64 }

// Window turns counters into means. K identifies what is counted. The zero value begins with the first sample.
type Window[K comparable] struct {
	at   time.Time
	last map[K]Bytes
}

// Next ends the window that the last call began and begins the next. Counters that did not exist before, or were reset,
// are left out. ok is false for the first call, and if the window was less than half or more than twice as long as
// intended: its mean would not be comparable.
func (w *Window[K]) Next(now time.Time, counted map[K]Bytes, length time.Duration) (rates map[K]Rate, ok bool) {
	took, last := now.Sub(w.at), w.last
	w.at, w.last = now, counted
	if last == nil || took < length/2 || took > 2*length {
		return nil, false
	}
	rates = make(map[K]Rate, len(counted))
	per := 8 / took.Seconds()
	for k, b := range counted {
		if was, known := last[k]; known && b.In >= was.In && b.Out >= was.Out {
			rates[k] = Rate{In: float64(b.In-was.In) * per, Out: float64(b.Out-was.Out) * per}
		}
	}
	return rates, true
}

// Forget makes the next call begin anew.
func (w *Window[K]) Forget() { *w = Window[K]{} }
