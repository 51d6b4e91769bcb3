package segments

import (
	"context"
	"errors"
	"fmt"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/overlay/span"
	"heddle/internal/overlay/wire"
)

// mostLate is how many reports another controller may lag behind: then it is told everything anew.
const mostLate = 8192

// mostHosts is how many hosts' reports one message between controllers has, and mostSegments how many of their
// segments, beside those of the one that goes beyond.
const (
	mostHosts    = 256
	mostSegments = 512
)

// peer is another controller that is told what hosts of this one say.
type peer struct {
	queue []*controllerv1.HostSegments
	late  bool
	wake  chan struct{}
}

// errLate ends a stream to another controller that does not keep up. It begins anew.
var errLate = errors.New("the other controller does not keep up")

// tellPeers has the other controllers told. The caller holds the lock.
func (h *Hub) tellPeers(m *controllerv1.HostSegments) {
	for p := range h.peers {
		if len(p.queue) >= mostLate {
			p.late, p.queue = true, nil
		}
		if !p.late {
			p.queue = append(p.queue, m)
		}
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// Share tells another controller what the hosts of this one have said and say, until ctx ends.
func (h *Hub) Share(ctx context.Context, send func(*controllerv1.FollowSegmentsHereResponse) error) error {
	p := &peer{wake: make(chan struct{}, 1)}
	h.mu.Lock()
	for id, f := range h.followers {
		if name, r, ok := h.table.Whole(id); ok {
			p.queue = append(p.queue, &controllerv1.HostSegments{Host: id, Name: name, Session: f.session,
				Report: wire.Report(&r)})
		}
	}
	h.peers[p] = true
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.peers, p)
	}()
	for first := true; ; first = false {
		h.mu.Lock()
		queue, late := p.queue, p.late
		p.queue = nil
		h.mu.Unlock()
		if late {
			return errLate
		}
		for m := range parts(queue, first) {
			if err := send(m); err != nil {
				return err
			}
		}
		select {
		case <-p.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// parts are the messages for reports. The first list makes one at least, by which the stream begins.
func parts(queue []*controllerv1.HostSegments, first bool) func(func(*controllerv1.FollowSegmentsHereResponse) bool) {
	return func(yield func(*controllerv1.FollowSegmentsHereResponse) bool) {
		m, segments := &controllerv1.FollowSegmentsHereResponse{}, 0
		for _, one := range queue {
			m.Hosts = append(m.Hosts, one)
			segments += len(one.GetReport().GetSegments())
			if len(m.GetHosts()) >= mostHosts || segments >= mostSegments {
				if !yield(m) {
					return
				}
				m, segments, first = &controllerv1.FollowSegmentsHereResponse{}, 0, false
			}
		}
		if len(m.GetHosts()) > 0 || first {
			yield(m)
		}
	}
}

// Learn takes in what hosts of another controller have said.
func (h *Hub) Learn(controller string, m *controllerv1.FollowSegmentsHereResponse) error {
	h.mu.Lock()
	h.heard[controller]++
	h.mu.Unlock()
	for _, one := range m.GetHosts() {
		r, err := wire.ReadReport(one.GetReport())
		if err != nil {
			return fmt.Errorf("what controller %s says of host %s: %w", controller, one.GetName(), err)
		}
		for !h.learn(controller, one, r) {
		}
	}
	return nil
}

// learn takes in what one host has said, if it is of the cluster; false if it was not clear whether it is.
func (h *Hub) learn(controller string, one *controllerv1.HostSegments, r span.Report) bool {
	before := h.removed()
	if h.Allowed(one.GetHost()) == nil {
		return true // it was taken out of the cluster
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.removals != before {
		return false
	}
	f := h.followers[one.GetHost()]
	switch {
	case f != nil && f.session >= one.GetSession():
	case one.GetAway():
		h.changed(h.table.Disconnected(one.GetHost(), one.GetSession()))
	default:
		if f != nil {
			f.end(errors.New("the host is at another controller"))
		}
		h.away[one.GetHost()] = controller
		r.Session = one.GetSession()
		changed, _ := h.table.Report(one.GetHost(), one.GetName(), r, h.Now())
		h.changed(changed)
	}
	return true
}

// Lost takes in that another controller does not answer: its hosts are on their way to others, or without one. Those
// that stay away for long count as disconnected, unless the controller is heard again.
func (h *Hub) Lost(ctx context.Context, controller string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	heard := h.heard[controller]
	time.AfterFunc(h.Linger, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if ctx.Err() != nil || h.heard[controller] != heard {
			return
		}
		for id, at := range h.away {
			if at == controller {
				h.changed(h.table.Disconnected(id, h.table.Session(id)))
			}
		}
	})
}
