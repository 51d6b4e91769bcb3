package segments

import (
	"sync/atomic"
	"testing"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/overlay/span"
)

// TestS180_ARemovedHostLeavesTheOverlay: other hosts know neither its endpoint nor its MACs from then on, also where
// something of it was on its way when it was removed.
func TestS180_ARemovedHostLeavesTheOverlay(t *testing.T) {
	h := newHub(t)
	var of atomic.Bool // c is of the cluster until somebody has asked
	allowed := h.Allowed
	h.Allowed = func(id string) map[span.VNI]bool {
		may := allowed(id)
		if id == "c" && !of.Load() {
			return nil
		}
		if id == "c" {
			of.Store(false)
			h.Remove(id)
		}
		return may
	}
	a, b := newAgent(t, "a"), newAgent(t, "b")
	a.have(map[span.VNI][]byte{5: {1, 3}})
	b.have(map[span.VNI][]byte{5: {2}})
	a.connect(h)
	b.connect(h)
	b.is("b knows of a", func() bool { return len(b.known.All(5).Members) == 2 })
	h.Remove("a")
	b.is("b knows nothing of a", func() bool {
		u := b.known.All(5)
		return len(u.Members) == 1 && u.Members[0].ID == "b" && len(u.Put) == 1
	})
	if err := <-a.done; err == nil {
		t.Error("the conversation of the removed host goes on")
	}
	// Something of c is on its way.
	of.Store(true)
	if err := h.arrive(newFollower("c"), hello()); err == nil || h.Counts().Hosts != 1 {
		t.Errorf("a host that is removed while it connects: %v, %d hosts", err, h.Counts().Hosts)
	}
	if err := h.arrive(newFollower("c"), hello()); err == nil || h.Counts().Hosts != 1 {
		t.Errorf("a host that was removed before it connects: %v, %d hosts", err, h.Counts().Hosts)
	}
	of.Store(true)
	err := h.Learn("other", &controllerv1.FollowSegmentsHereResponse{Hosts: []*controllerv1.HostSegments{{Host: "c",
		Name: "c", Session: 1, Report: hello().GetReport()}}})
	if err != nil || h.Counts().Hosts != 1 {
		t.Errorf("a host of another controller that is removed meanwhile: %v, %d hosts", err, h.Counts().Hosts)
	}
	of.Store(true)
	d := newFollower("d")
	if err := h.arrive(d, hello()); err != nil {
		t.Fatal(err)
	}
	d.untold[5] = true
	for !h.seed(d, &span.Update{VNI: 5, Members: []span.Host{{ID: "c", Name: "c"}}}) {
	}
	if h.Counts().Hosts != 2 || len(d.untold) != 0 {
		t.Errorf("a host of which another one knew is removed meanwhile: %d hosts", h.Counts().Hosts)
	}
}

// newFollower is a host that is about to connect.
func newFollower(id string) *follower {
	return &follower{host: Host{id, id}, end: func(error) {}, wake: make(chan struct{}, 1),
		cursors: map[span.VNI]span.Cursor{}, dirty: map[span.VNI]bool{}, untold: map[span.VNI]bool{}}
}

// hello is the first message of a host in segment 5.
func hello() *controllerv1.FollowSegmentsRequest {
	return &controllerv1.FollowSegmentsRequest{Hello: &controllerv1.SegmentHello{},
		Report: &controllerv1.SegmentReport{Whole: true, Segments: []*controllerv1.HostSegment{{Vni: 5, Whole: true}}}}
}
