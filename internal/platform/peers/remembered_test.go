package peers

import (
	"testing"
	"testing/synctest"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// A host of a controller that is lost is remembered as it was there: as connected for a minute, and then as lost when
// that controller was heard last. One that the controller no longer speaks of is lost as of when it did.
func TestS131_AHostIsRememberedAsItWasLast(t *testing.T) {
	host := func(id string, revision int64) *controllerv1.HostHere {
		return &controllerv1.HostHere{Connected: true, Host: &controllerv1.Host{Id: id, Revision: revision,
			Controller: "c3", State: controllerv1.HostState_HOST_STATE_UP}}
	}
	synctest.Test(t, func(t *testing.T) {
		r := &Roster{}
		r.Remember("c3", []*controllerv1.HostHere{host("h1", 31)})
		time.Sleep(20 * time.Second)
		r.Remember("c3", []*controllerv1.HostHere{host("h1", 32), host("h2", 32)})
		heard := time.Now()
		time.Sleep(30 * time.Second)
		for _, h := range r.Remembered("c3", nil, false) {
			if !h.GetConnected() || !h.GetHost().GetStale() || h.GetHost().GetRevision() != 32 ||
				!h.GetHeard().AsTime().Equal(heard) {
				t.Errorf("after 30 s: %+v", h)
			}
		}
		time.Sleep(time.Hour)
		list := r.Remembered("c3", nil, false)
		if len(list) != 2 {
			t.Fatalf("after an hour: %+v", list)
		}
		for _, h := range list {
			at := h.GetHost()
			if h.GetConnected() || at.GetState() != controllerv1.HostState_HOST_STATE_DISCONNECTED ||
				at.GetRevision() != 32 || at.GetController() != "c3" || !at.GetSince().AsTime().Equal(heard) {
				t.Errorf("after an hour: %+v", h)
			}
		}
		back := []*controllerv1.HostHere{host("h2", 33)}
		if list := r.Remembered("c3", back, true); len(list) != 1 || list[0].GetHost().GetId() != "h1" ||
			list[0].GetConnected() {
			t.Errorf("it is back without h1: %+v", list)
		}
		r.Remember("c3", back)
		if list := r.Remembered("c3", back, true); len(list) != 1 || !list[0].GetHeard().AsTime().Equal(heard) {
			t.Errorf("and later: %+v", list)
		}
	})
}
