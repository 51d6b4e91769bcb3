package peers

import (
	"fmt"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// Remember keeps which hosts another controller had: if it does not answer later, these are shown as stale.
func (r *Roster) Remember(controller string, hosts []*controllerv1.HostHere) {
	r.lastMu.Lock()
	defer r.lastMu.Unlock()
	if r.last == nil {
		r.last = map[string]hostsThen{}
	}
	r.last[controller] = hostsThen{time.Now(), hosts}
}

// hostsThen is which hosts a controller had when it answered last.
type hostsThen struct {
	at    time.Time
	hosts []*controllerv1.HostHere
}

// lastTime is how long that is worth showing: hosts of a controller that is gone are elsewhere by then.
const lastTime = time.Minute

// Remembered are the hosts that another controller had when it answered last, marked as stale.
func (r *Roster) Remembered(controller string) (list []*controllerv1.HostHere) {
	r.lastMu.Lock()
	defer r.lastMu.Unlock()
	then := r.last[controller]
	if time.Since(then.at) > lastTime {
		delete(r.last, controller)
		return nil
	}
	for _, h := range then.hosts {
		if !h.GetConnected() {
			continue
		}
		was := h.GetHost()
		list = append(list, &controllerv1.HostHere{Connected: true, Report: h.GetReport(), Host: &controllerv1.Host{
			Name: was.GetName(), Id: was.GetId(), Labels: was.GetLabels(), State: was.GetState(), Agent: was.GetAgent(),
			Revision: was.GetRevision(), Since: was.GetSince(), Ports: was.GetPorts(), Address: was.GetAddress(),
			Controller: was.GetController(), Switches: was.GetSwitches(), Stale: true,
			Problems: []string{fmt.Sprintf("controller %s does not "+
				"answer: this is what it knew last", was.GetController())}}})
	}
	return list
}
