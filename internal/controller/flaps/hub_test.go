package flaps

import (
	"testing"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/part"
)

// A MAC that two hosts learn again and again is told to both, once a connection, and taken back when one of them goes.
func TestHub_TellsBothHosts(t *testing.T) {
	again := []*controllerv1.LearnedAgain{{Switch: "dvs", Segment: "1", Mac: "02:00:00:00:00:01", Port: "p", Times: 3}}
	h := NewHub()
	conns := map[string]*part.Conn{}
	for _, id := range []string{"a", "b"} {
		h.Joined(id, "name of "+id)
		conns[id] = &part.Conn{Poke: func() {}}
		h.Connected(id, conns[id], &controllerv1.FollowSliceRequest{})
	}
	told := func(id string) *controllerv1.HostFlapping {
		m := &controllerv1.FollowSliceResponse{}
		h.Objects(id, conns[id], func() *controllerv1.FollowSliceResponse { return m })
		return m.GetFlapping()
	}
	h.Hear("a", conns["a"], &controllerv1.FollowSliceRequest{Offers: &controllerv1.HostOffers{Again: again}})
	if h.Find(); told("a") != nil {
		t.Error("one host alone has a MAC that goes to and fro")
	}
	h.Hear("b", conns["b"], &controllerv1.FollowSliceRequest{Offers: &controllerv1.HostOffers{Again: again}})
	h.Find()
	for id, other := range map[string]string{"a": "name of b", "b": "name of a"} {
		list := told(id).GetMacs()
		if len(list) != 1 || len(list[0].GetElsewhere()) != 1 || list[0].GetElsewhere()[0].GetHost() != other {
			t.Errorf("%s is told %v", id, list)
		}
		if told(id) != nil {
			t.Errorf("%s is told the same again", id)
		}
	}
	if len(h.Shared()) != 2 {
		t.Errorf("other controllers are told %v", h.Shared())
	}
	h.Disconnected("b", conns["b"])
	h.Find()
	if now := told("a"); now == nil || len(now.GetMacs()) != 0 {
		t.Errorf("a is told %v", now)
	}
	// The other host is at another controller.
	h.Learn("c2", []*controllerv1.SharedAgain{{Host: "b", Name: "anything", Again: again}})
	if h.Find(); len(told("a").GetMacs()) != 1 {
		t.Error("what another controller says does not count")
	}
	h.Learn("c2", nil)
	if h.Find(); len(told("a").GetMacs()) != 0 {
		t.Error("what another controller takes back counts")
	}
}
