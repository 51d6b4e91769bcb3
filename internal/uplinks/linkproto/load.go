package linkproto

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/fabric"
	"heddle/internal/plan"
	"heddle/internal/uplinks/wire"
)

// OpenBulk returns the Opener of packet sockets for benchmarks.
func OpenBulk(ifindex uint32, listen wire.Listen) (Socket, error) {
	return wire.OpenBulk(ifindex, listen)
}

// LoadFlow is what one uplink sends to another one in a benchmark.
type LoadFlow struct {
	Number uint32
	fabric.Path
	// MAC is the address of the receiving uplink's device.
	MAC plan.MAC
	// MTU is the length of each packet, in bytes of layer 3, Rate how much is sent at most, in bits per second.
	MTU  int
	Rate uint64
}

// LoadPlan is one host's part in a benchmark.
type LoadPlan struct {
	// Run is the benchmark's number.
	Run     uint32
	Uplinks map[fabric.End]Uplink
	// Keys sign frames; the first one signs, all are accepted.
	Keys []fabric.Secret
	// Lasts is how long each flow is sent.
	Lasts         time.Duration
	Send, Receive []LoadFlow
}

// LoadSent is what came of a flow that was sent, LoadReceived what arrived of one.
type (
	LoadSent struct {
		Number                   uint32
		Frames                   uint64
		Lasted                   time.Duration
		Pings, Answered, Replies uint64
		P50, P99                 time.Duration
	}
	LoadReceived struct {
		Number             uint32
		Frames, Duplicates uint64
	}
)

// Times of a benchmark.
const (
	// paceEvery is how often frames are sent that are due: so small are the bursts.
	paceEvery = 2 * time.Millisecond
	// mostBurst is what a flow makes up for at most that it could not send in time.
	mostBurst = 20 * time.Millisecond
	// awakeEvery is how often a flow pings that waits for its first answer.
	awakeEvery = 100 * time.Millisecond
	// pingEvery is how often a flow pings, and mostPings how many pings a host sends per second.
	pingEvery = 50 * time.Millisecond
	mostPings = 1000
)

// Load is a host's part in a benchmark that runs. A flow pings the other uplink first, and is sent once that answers:
// what nobody hears is not sent, and switches have learned where the other uplink is.
type Load struct {
	plan    LoadPlan
	log     *slog.Logger
	sockets map[uint32]Socket
	uplinks map[uint32]Uplink
	readers sync.WaitGroup
	closed  sync.Once

	mu  sync.Mutex
	out map[ends]*outflow
	in  map[ends]*inflow
}

// ends name a flow in its frames.
type ends struct{ from, to fabric.EndID }

func (f *LoadFlow) ends() ends { return ends{f.From.ID(), f.To.ID()} }

// StartLoad opens the sockets, and counts and answers from now on.
func StartLoad(open Opener, log *slog.Logger, p LoadPlan) (*Load, error) {
	l := &Load{plan: p, log: log, sockets: map[uint32]Socket{}, uplinks: map[uint32]Uplink{}, out: map[ends]*outflow{},
		in: map[ends]*inflow{}}
	for _, f := range p.Send {
		l.out[f.ends()] = newOutflow(f, max(pingEvery, time.Duration(len(p.Send))*time.Second/mostPings))
	}
	for _, f := range p.Receive {
		l.in[f.ends()] = newInflow(f, p.Lasts)
	}
	for _, u := range p.Uplinks {
		if l.sockets[u.Ifindex] != nil {
			continue
		}
		s, err := open(u.Ifindex, hearsKinds(true))
		if err != nil {
			return nil, errors.Join(err, l.close())
		}
		l.sockets[u.Ifindex], l.uplinks[u.Ifindex] = s, u
	}
	for i, s := range l.sockets {
		l.readers.Go(func() { l.read(l.uplinks[i], s) })
	}
	return l, nil
}

func (l *Load) close() (err error) {
	l.closed.Do(func() {
		for _, s := range l.sockets {
			err = errors.Join(err, s.Close())
		}
		l.readers.Wait()
	})
	return err
}

// End ends all, and returns what was counted.
func (l *Load) End() (sent []LoadSent, received []LoadReceived) {
	if err := l.close(); err != nil {
		l.log.Warn("close sockets of a benchmark", "err", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.plan.Send {
		sent = append(sent, l.out[f.ends()].result())
	}
	for _, f := range l.plan.Receive {
		received = append(received, l.in[f.ends()].LoadReceived)
	}
	return sent, received
}

// read takes frames in until the socket is closed.
func (l *Load) read(u Uplink, s Socket) {
	for {
		f, err := s.Receive()
		if errors.Is(err, unix.ENETDOWN) {
			continue
		}
		if err != nil {
			return
		}
		p, err := fabric.Read(f.Payload, l.plan.Keys)
		if err != nil || p.Sent != int64(l.plan.Run) {
			continue
		}
		if l.take(p, time.Now()) {
			if err := s.Send(l.plan.Keys[0].Frame(p.Answer(), u.MAC, f.Source)); err != nil {
				l.log.Debug("pong not sent", "device", u.Ifindex, "err", err)
			}
		}
	}
}

// take takes in a frame, and reports whether it is to be answered.
func (l *Load) take(p fabric.Probe, now time.Time) (answer bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := ends{p.From, p.To}
	if f := l.in[k]; f != nil && f.VLAN == p.VLAN {
		switch p.For {
		case fabric.Load:
			f.take(p.Number)
		case fabric.Ping:
			return true
		}
	}
	if f := l.out[k]; f != nil && f.VLAN == p.VLAN && p.For == fabric.Pong {
		f.answered(p.Number, now)
	}
	return false
}

// Run sends until all flows are over, or ctx ends.
func (l *Load) Run(ctx context.Context) error {
	by := map[fabric.End][]*outflow{}
	for _, f := range l.plan.Send {
		by[f.From] = append(by[f.From], l.out[f.ends()])
	}
	var all sync.WaitGroup
	for end, flows := range by {
		u, ok := l.plan.Uplinks[end]
		if !ok {
			continue
		}
		all.Go(func() { l.pace(ctx, u, flows) })
	}
	all.Wait()
	return ctx.Err()
}

// pace sends the flows of one uplink.
func (l *Load) pace(ctx context.Context, u Uplink, flows []*outflow) {
	tick := time.NewTicker(paceEvery)
	defer tick.Stop()
	began := time.Now()
	for {
		now, over := time.Now(), true
		for _, f := range flows {
			l.mu.Lock()
			list := f.due(began, now, l.plan.Lasts)
			over = over && f.over
			l.mu.Unlock()
			l.sendAll(u, f, list)
		}
		if over {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// sendAll sends frames of a flow, and counts those that were sent.
func (l *Load) sendAll(u Uplink, f *outflow, list []fabric.Probe) {
	for _, p := range list {
		p.Sent, p.From, p.To, p.VLAN = int64(l.plan.Run), f.names.from, f.names.to, f.VLAN
		err := l.sockets[u.Ifindex].Send(l.plan.Keys[0].Frame(p, u.MAC, f.MAC))
		l.mu.Lock()
		f.sent(p, err)
		l.mu.Unlock()
		if err != nil {
			l.log.Debug("frame of a benchmark not sent", "device", u.Ifindex, "err", err)
		}
	}
}

// inflow is a flow that arrives.
type inflow struct {
	LoadFlow
	LoadReceived
	seen []uint64 // a bit for each number
	most uint64
}

func newInflow(f LoadFlow, lasts time.Duration) *inflow {
	most := uint64(float64(f.Rate) * lasts.Seconds() / 8 / float64(max(f.MTU, fabric.Shortest)))
	return &inflow{LoadFlow: f, LoadReceived: LoadReceived{Number: f.Number}, most: 2*most + 1024}
}

// take counts a frame. Numbers that no frame can have are left out.
func (f *inflow) take(number uint64) {
	if number >= f.most {
		return
	}
	word, bit := int(number/64), uint64(1)<<(number%64)
	if word >= len(f.seen) {
		f.seen = append(f.seen, make([]uint64, word+1-len(f.seen))...)
	}
	if f.seen[word]&bit != 0 {
		f.Duplicates++
		return
	}
	f.seen[word] |= bit
	f.Frames++
}

// quantile returns a quantile of sorted times; 0 without any.
func quantile(list []time.Duration, q float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	return list[min(len(list)-1, int(q*float64(len(list))))]
}

// result returns what came of a flow.
func (f *outflow) result() LoadSent {
	r := f.LoadSent
	slices.Sort(f.trips)
	r.P50, r.P99 = quantile(f.trips, 0.5), quantile(f.trips, 0.99)
	return r
}
