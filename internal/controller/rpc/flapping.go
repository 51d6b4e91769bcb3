package rpc

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/flaps"
)

// mostFlapping is for how many hosts of another controller the MACs count that these learned more than once.
const mostFlapping = 1 << 14

// flapping is the part of a fleet that finds MACs which go to and fro between hosts. Controllers tell one another what
// their hosts learn again and again, with what they tell of moves.
type flapping struct{ *fleet }

// said takes in what a host has learned more than once. The caller holds the lock.
func (f flapping) said(h *host, list []*controllerv1.LearnedAgain) {
	was := h.again
	h.again = flaps.Checked(list)
	if !slices.EqualFunc(was, h.again, func(a, b *controllerv1.LearnedAgain) bool { return proto.Equal(a, b) }) {
		f.meeting.look()
	}
}

// shared is what other controllers are to know of this one's hosts. The caller holds the lock.
func (f flapping) shared() (list []*controllerv1.SharedAgain) {
	for _, h := range f.hosts {
		if h.conn != nil && len(h.again) > 0 {
			list = append(list, &controllerv1.SharedAgain{Host: h.id, Name: h.doc.Name, Again: h.again})
		}
	}
	slices.SortFunc(list, func(a, b *controllerv1.SharedAgain) int { return cmp.Compare(a.GetHost(), b.GetHost()) })
	return list
}

// join finds the MACs that several hosts have learned more than once, and wakes the connections of those that are to
// know. The caller holds the lock.
func (f flapping) join() {
	var all []flaps.Host
	for _, h := range f.hosts {
		if h.conn != nil && len(h.again) > 0 {
			all = append(all, flaps.Host{ID: h.id, Name: h.doc.Name, Again: h.again})
		}
	}
	for _, said := range f.meeting.away {
		list := said.moves.GetAgain()
		for _, s := range list[:min(len(list), mostFlapping)] {
			if h := f.hosts[s.GetHost()]; h != nil && h.conn == nil {
				all = append(all, flaps.Host{ID: h.id, Name: h.doc.Name, Again: flaps.Checked(s.GetAgain())})
			}
		}
	}
	f.meeting.flapping = map[string]*controllerv1.HostFlapping{}
	for id, list := range flaps.Join(all) {
		f.meeting.flapping[id] = &controllerv1.HostFlapping{Macs: list}
	}
	for id, h := range f.hosts {
		if h.conn != nil && !proto.Equal(f.meeting.flapping[id], h.conn.flapping) {
			h.conn.poke()
		}
	}
}

// add adds to a message what a host has to know, where it is another; m is nil for no message so far.
func (f flapping) add(h *host, c *conn, m *controllerv1.FollowSliceResponse) *controllerv1.FollowSliceResponse {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.meeting.flapping[h.id]
	if now == nil && c.flapping != nil {
		now = &controllerv1.HostFlapping{}
	}
	if now == nil || proto.Equal(now, c.flapping) {
		return m
	}
	if m == nil {
		m = &controllerv1.FollowSliceResponse{}
	}
	m.Flapping, c.flapping = now, now
	return m
}
