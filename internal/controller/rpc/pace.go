package rpc

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// Bounds of what a host's reports cost, which are judged as a whole at each change. A host sends a few a second, so
// that one with 10,000 ports stays below a quarter of them. Of who sends more, reports wait, and those that wait become
// one.
const (
	// paceRate is how many bytes of reports of a host are judged in a second, on average; paceBurst how many at once.
	paceRate  = 16 << 20
	paceBurst = 64 << 20
	// paceLeast is what a report costs at least, in bytes.
	paceLeast = 64 << 10
	// mostBatches is how many batches of a host's reports wait, mostPending how many bytes have come for them. A host
	// that says more is read no further until one was judged.
	mostBatches = 64
	mostPending = 16 << 20
)

// pace bounds how often a host reports.
type pace struct{ *rate.Limiter }

func newPace() pace { return pace{rate.NewLimiter(paceRate, paceBurst)} }

// cost is what the reports of a message cost; 0 where it has none.
func (p pace) cost(f *fleet, h *host, m *controllerv1.FollowSliceRequest) int {
	if m.GetReport() == nil && m.GetChange() == nil {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return min(paceBurst, max(paceLeast, h.report.size()))
}

// wait waits for the turn of a message, if it is a report.
func (p pace) wait(ctx context.Context, f *fleet, h *host, m *controllerv1.FollowSliceRequest) error {
	return p.WaitN(ctx, p.cost(f, h, m))
}

// paced takes in what one connection of a host says. Reports wait for their turn, and with them, in their order, what
// is about them: acknowledgements, and what a report is the answer to. All else passes: a host that reports much still
// answers pings and calls, and its guests start.
type paced struct {
	*Server
	h *host
	c *conn

	mu      sync.Mutex
	waits   []*reportBatch
	bytes   int           // of all that waits
	running bool          // somebody judges those that wait
	less    chan struct{} // holds one token when fewer wait
}

func newPaced(s *Server, h *host, c *conn) *paced {
	return &paced{Server: s, h: h, c: c, less: make(chan struct{}, 1)}
}

// take takes in one message of the host.
func (p *paced) take(ctx context.Context, m *controllerv1.FollowSliceRequest) error {
	now, later := divided(m)
	if later == nil || p.atOnce(later) {
		p.fleet.said(p.h, p.c, m)
	} else {
		p.fleet.said(p.h, p.c, now)
		if err := p.put(ctx, later); err != nil {
			return err
		}
	}
	p.claimed(m.GetClaims())
	p.fleet.parts.Serve(ctx, p.h.id, p.c.Conn, m)
	return nil
}

// divided is what of a message counts at once, and what counts after the reports before it; nil for nothing of that.
func divided(m *controllerv1.FollowSliceRequest) (now, later *controllerv1.FollowSliceRequest) {
	now = &controllerv1.FollowSliceRequest{Pong: m.GetPong(), Offers: m.GetOffers(), Prepared: m.GetPrepared()}
	if m.GetReport() == nil && m.GetChange() == nil && m.GetAcknowledgement() == nil && m.GetReported() == 0 &&
		len(m.GetConnected()) == 0 {
		return now, nil
	}
	return now, &controllerv1.FollowSliceRequest{Report: m.GetReport(), Change: m.GetChange(),
		Acknowledgement: m.GetAcknowledgement(), Reported: m.GetReported(), Connected: m.GetConnected()}
}

// atOnce reports whether a message need not wait: no other one does, and it is the host's turn.
func (p *paced) atOnce(m *controllerv1.FollowSliceRequest) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.running && p.h.pace.AllowN(time.Now(), p.h.pace.cost(p.fleet, p.h, m))
}

// put has a message wait behind those that wait already. It waits itself while these are too many.
func (p *paced) put(ctx context.Context, m *controllerv1.FollowSliceRequest) error {
	for !p.add(ctx, m) {
		select {
		case <-p.less:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// add has a message wait; it is false where there is no room.
func (p *paced) add(ctx context.Context, m *controllerv1.FollowSliceRequest) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	size := proto.Size(m)
	if len(p.waits) >= mostBatches || p.bytes > 0 && p.bytes+size > mostPending {
		return false
	}
	if len(p.waits) == 0 || p.waits[len(p.waits)-1].sealed() {
		p.waits = append(p.waits, newBatch())
	}
	p.bytes += p.waits[len(p.waits)-1].add(m, size)
	if !p.running {
		p.running = true
		go p.judge(ctx)
	}
	return true
}

// judge takes in what waits, each at its turn, until nothing does or ctx ends.
func (p *paced) judge(ctx context.Context) {
	for {
		p.mu.Lock()
		if p.running = len(p.waits) > 0; !p.running {
			p.mu.Unlock()
			return
		}
		first := p.waits[0].probe()
		p.mu.Unlock()
		if p.h.pace.wait(ctx, p.fleet, p.h, first) != nil {
			return // the connection has ended, and with it what waits
		}
		p.next()
		select {
		case p.less <- struct{}{}:
		default:
		}
	}
}

// next takes in the first that waits, with what has come to it meanwhile. A claim that comes in between waits: what has
// ended before must not count as its end.
func (p *paced) next() {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.waits[0].message()
	p.bytes -= p.waits[0].bytes
	p.waits = p.waits[1:]
	p.fleet.said(p.h, p.c, m)
}

// claimed forgets that the connecting of adapters has ended for which the host asks anew: what waits is about the time
// before.
func (p *paced) claimed(list []*controllerv1.PortClaim) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range list {
		for _, b := range p.waits {
			b.said.Connected = slices.DeleteFunc(b.said.GetConnected(), func(a *controllerv1.ClaimedAdapter) bool {
				return strings.EqualFold(a.GetVm(), q.GetVm()) && a.GetAdapter() == q.GetAdapter()
			})
		}
	}
}
