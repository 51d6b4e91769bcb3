package peers

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// then is a host as another controller had it, and when that was heard.
type then struct {
	at   time.Time
	host *controllerv1.HostHere
}

const (
	// lastTime is how long a host of a controller that does not answer counts as connected there: it is elsewhere by
	// then.
	lastTime = time.Minute
	// keepTime is how long it is known from when on it was lost there.
	keepTime = 30 * 24 * time.Hour
)

// Remember keeps which hosts another controller had, all of them: if it does not answer later, these are shown as
// stale, and where none of the controllers has them, as lost since then.
func (r *Roster) Remember(controller string, hosts []*controllerv1.HostHere) {
	now := time.Now()
	r.lastMu.Lock()
	defer r.lastMu.Unlock()
	if r.last == nil {
		r.last = map[string]map[string]then{}
	}
	before, next := r.last[controller], map[string]then{}
	for _, h := range hosts {
		id := h.GetHost().GetId()
		if h.GetReport() == nil { // it was not asked for; what was known last is better than nothing
			h = &controllerv1.HostHere{Connected: h.GetConnected(), Host: h.GetHost(), Heard: h.GetHeard(),
				Report: before[id].host.GetReport()}
		}
		next[id] = then{now, h}
	}
	for id, was := range before {
		if _, has := next[id]; !has && was.host.GetConnected() && now.Sub(was.at) < keepTime {
			next[id] = was // it has left, or the controller has started again
		}
	}
	r.last[controller] = next
}

// Remembered are the hosts that another controller had when it was heard of them last, without those that it has said
// itself. Those of one that does not answer count as connected for a while, and are stale.
func (r *Roster) Remembered(controller string, said []*controllerv1.HostHere, answers bool) (
	list []*controllerv1.HostHere) {
	has := map[string]bool{}
	for _, h := range said {
		has[h.GetHost().GetId()] = true
	}
	r.lastMu.Lock()
	defer r.lastMu.Unlock()
	for id, was := range r.last[controller] {
		if !was.host.GetConnected() || has[id] {
			continue
		}
		list = append(list, was.now(!answers && time.Since(was.at) <= lastTime))
	}
	return list
}

// now is what there is to say of the host today.
func (t then) now(connected bool) *controllerv1.HostHere {
	was := t.host.GetHost()
	out := &controllerv1.Host{Name: was.GetName(), Id: was.GetId(), Labels: was.GetLabels(), State: was.GetState(),
		Agent: was.GetAgent(), Revision: was.GetRevision(), Since: was.GetSince(), Ports: was.GetPorts(),
		Address: was.GetAddress(), Controller: was.GetController(), Switches: was.GetSwitches()}
	here := &controllerv1.HostHere{Connected: connected, Host: out, Heard: timestamppb.New(t.at)}
	if !connected {
		out.State, out.Since = controllerv1.HostState_HOST_STATE_DISCONNECTED, here.GetHeard()
		return here
	}
	here.Report, out.Stale = t.host.GetReport(), true
	out.Problems = []string{fmt.Sprintf("controller %s does not answer: this is what it knew last",
		was.GetController())}
	return here
}
