package linkproto

import (
	"time"

	"heddle/internal/fabric"
	"heddle/internal/fabric/benchmark"
)

// outflow is a flow that is sent. Its owner holds the lock.
type outflow struct {
	LoadFlow
	LoadSent
	names ends
	every time.Duration // of pings
	// began is when the first answer came, and last when frames were sent last.
	began, last time.Time
	over        bool
	credit      float64 // bytes that may be sent
	number      uint64  // of the next frame
	// pinged is when the last ping was sent, ping the number of the next one; those below counted are not counted: they
	// wait for the first answer.
	pinged        time.Time
	ping, counted uint64
	flying        map[uint64]time.Time
	replied       map[uint64]bool
	trips         []time.Duration
}

func newOutflow(f LoadFlow, every time.Duration) *outflow {
	return &outflow{LoadFlow: f, LoadSent: LoadSent{Number: f.Number}, names: f.ends(), every: every,
		flying: map[uint64]time.Time{}, replied: map[uint64]bool{}}
}

// due returns the frames to send now. started is when the host's part began.
func (f *outflow) due(started, now time.Time, lasts time.Duration) (list []fabric.Probe) {
	switch {
	case f.over:
	case f.began.IsZero() && now.Sub(started) > benchmark.AwakeTime:
		f.over = true
	case f.began.IsZero():
		return f.pings(now, awakeEvery)
	case now.Sub(f.began) < lasts:
		f.Lasted = now.Sub(f.began)
		return append(f.pings(now, f.every), f.loads(now)...)
	default:
		f.Lasted = lasts
		f.over = len(f.flying) == 0 || now.Sub(f.began) > lasts+fabric.Wait
	}
	return nil
}

func (f *outflow) pings(now time.Time, every time.Duration) []fabric.Probe {
	if now.Sub(f.pinged) < every {
		return nil
	}
	f.pinged = now
	f.flying[f.ping] = now
	f.ping++
	return []fabric.Probe{{For: fabric.Ping, Size: fabric.Shortest, Number: f.ping - 1}}
}

// loads returns as many frames as the rate allows by now.
func (f *outflow) loads(now time.Time) (list []fabric.Probe) {
	perSecond := float64(f.Rate) / 8
	f.credit += perSecond * now.Sub(f.last).Seconds()
	f.credit = min(f.credit, max(float64(f.MTU), perSecond*mostBurst.Seconds()))
	f.last = now
	for ; f.credit >= float64(f.MTU); f.credit -= float64(f.MTU) {
		list = append(list, fabric.Probe{For: fabric.Load, Size: f.MTU, Number: f.number})
		f.number++
	}
	return list
}

// sent counts a frame that was handed to the kernel.
func (f *outflow) sent(p fabric.Probe, err error) {
	switch {
	case p.For == fabric.Ping && err != nil:
		delete(f.flying, p.Number)
	case p.For == fabric.Ping && p.Number >= f.counted && !f.began.IsZero():
		f.Pings++
	case p.For == fabric.Load && err == nil:
		f.Frames++
	}
}

// answered takes in a pong. The first one begins the flow.
func (f *outflow) answered(number uint64, now time.Time) {
	at, flying := f.flying[number]
	if f.began.IsZero() {
		if flying {
			f.began, f.last, f.counted = now, now, f.ping
			clear(f.flying)
		}
		return
	}
	if number < f.counted || number >= f.ping {
		return
	}
	if flying {
		delete(f.flying, number)
		f.trips, f.Answered = append(f.trips, now.Sub(at)), f.Answered+1
		f.replied[number] = true
	}
	if f.replied[number] {
		f.Replies++
	}
}
