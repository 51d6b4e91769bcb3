package together

import (
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/part"
	"heddle/internal/slice"
)

// hubWith is a hub with a host that prepares changes, and one that does not know how.
func hubWith() (h *Hub, able, old *part.Conn) {
	h = NewHub(slog.New(slog.DiscardHandler))
	able, old = &part.Conn{Poke: func() {}}, &part.Conn{Poke: func() {}}
	h.Connected("able", able, &controllerv1.FollowSliceRequest{Hello: &controllerv1.HostHello{Together: true}})
	h.Connected("old", old, &controllerv1.FollowSliceRequest{Hello: &controllerv1.HostHello{}})
	return h, able, old
}

// showsClock has the hub know the host's clock, which shows what its own does.
func showsClock(h *Hub, id string, c *part.Conn) {
	sent := h.Asks(id, c)
	h.Clock(id, c, &controllerv1.ClockAnswer{Asked: sent, Received: sent, Sent: sent}, sent+1)
}

func content() (*slice.Set, error) { return &slice.Set{}, nil }

// A host is told once what it is to prepare, and is ready when it has said so and its clock is known. One that does not
// know how is not asked.
func TestS101_ARoundEndsWhenAllHaveAnswered(t *testing.T) {
	h, able, old := hubWith()
	r := h.Round("c1")
	for id, c := range map[string]*part.Conn{"able": able, "old": old} {
		if err := r.Ask(id, "name of "+id, "agent 1", c, content); err != nil {
			t.Fatal(err)
		}
	}
	if change, set := h.Prepares("able", able); change != "c1" || set == nil {
		t.Errorf("it is to prepare %q", change)
	}
	if change, _ := h.Prepares("able", able); change != "" {
		t.Error("it is told twice")
	}
	showsClock(h, "able", able)
	h.Hear("able", able, &controllerv1.FollowSliceRequest{Prepared: &controllerv1.PreparedChange{Id: "c1"}})
	list, err := r.Await(t.Context(), time.Hour)
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	for _, p := range list {
		if ready := p.GetName() == "name of able"; p.GetReady() != ready || len(p.GetProblems()) > 0 == ready {
			t.Errorf("%v", p)
		}
	}
}

// A clock that is asked for while an earlier question is on its way is asked for when that one's answer has come: the
// host's connection would else sleep until the next question by itself, and the round with it.
func TestS101_AClockThatIsAskedForMeanwhileIsAskedNext(t *testing.T) {
	h, able, _ := hubWith()
	poked := 0
	able.Poke = func() { poked++ }
	sent := h.Asks("able", able)
	if err := h.Round("c1").Ask("able", "able", "agent 1", able, content); err != nil {
		t.Fatal(err)
	}
	h.Prepares("able", able)
	poked = 0
	h.Clock("able", able, &controllerv1.ClockAnswer{Asked: sent, Received: sent, Sent: sent}, sent+1)
	if poked != 1 {
		t.Errorf("the connection is woken %d times", poked)
	}
}

// A host that has another connection than the one by which it was asked is lost to the round, which does not wait for
// it.
func TestS101_AHostThatReconnectsIsLostToTheRound(t *testing.T) {
	h, able, _ := hubWith()
	r := h.Round("c1")
	if err := r.Ask("able", "able", "agent 1", able, content); err != nil {
		t.Fatal(err)
	}
	h.Connected("able", &part.Conn{Poke: func() {}}, &controllerv1.FollowSliceRequest{})
	h.Disconnected("able", able)
	list, err := r.Await(t.Context(), time.Hour)
	if err != nil || len(list) != 1 || !list[0].GetLost() || list[0].GetReady() {
		t.Error(list, err)
	}
}

// Between a decision and its instant a host whose clock is known is told to wait, and another one is told nothing.
func TestS101_NobodyChangesBeforeTheInstant(t *testing.T) {
	h, able, old := hubWith()
	showsClock(h, "able", able)
	if at, change, held := h.NotBefore("able", able); at != 0 || change != "" || held {
		t.Errorf("without a decision: %d, %q, %v", at, change, held)
	}
	instant := h.Ticks() + int64(time.Hour)
	doc, err := json.Marshal(Decision{ID: "d1", At: map[string]int64{h.Start(): instant}})
	if err != nil {
		t.Fatal(err)
	}
	h.Decided(doc)
	at, change, held := h.NotBefore("able", able)
	if at-instant > 1 || instant-at > 1 || change != "d1" || held {
		t.Errorf("it waits until %d, not %d, for %q, held %v", at, instant, change, held)
	}
	if at, _, held := h.NotBefore("old", old); at != 0 || !held {
		t.Errorf("one that cannot wait: %d, held %v", at, held)
	}
	hash := make([]byte, len(slice.Hash{}))
	h.Hear("able", able, &controllerv1.FollowSliceRequest{Acknowledgement: &controllerv1.SliceAcknowledgement{
		ActiveAt: at + 7, Version: &controllerv1.SliceVersion{Hash: hash}}})
	if made := h.Made("able"); made.GetId() != "d1" || !made.GetTold() || made.GetOff()-7 > 1 || 7-made.GetOff() > 1 {
		t.Errorf("it made the change %v", made)
	}
}
