package standby

import (
	"fmt"

	"heddle/internal/agent/presence"
	"heddle/internal/api"
	"heddle/internal/host/guest"
	"heddle/internal/plan"
)

// Silence begins the wait of a port because somebody says that its guest has left. What its hypervisor says counts
// first.
func (wt *Part) Silence(p *plan.Port) error {
	w, now := wt.host.Document.WaitOf(p.ID), wt.adapters[p.Monitor.Socket].Run
	by := "its QEMU at " + p.Monitor.Socket
	if now == guest.RunUnknown && wt.domains[p.Domain] != guest.RunUnknown {
		now, by = wt.domains[p.Domain], "libvirt"
	}
	step, believed := presence.Silenced(presenceOf(w), now)
	switch {
	case !believed && presenceOf(w).Silent():
		return api.NewError(api.Invalid, fmt.Sprintf("port %s is silent already: it waits for its guest to arrive here",
			p.ID.Name))
	case !believed:
		return api.NewError(api.Invalid, fmt.Sprintf("port %s is not silenced: %s says that its guest runs here",
			p.ID.Name, by))
	}
	return wt.silenced(p.ID, wt.take(p.ID, w, step))
}

// silenced makes a port silent whose record says so, for a caller that waits for it: the disk, and all that takes
// longer, follow the answer. An agent that dies in between leaves the wait in the kernel, where the next one finds it.
// It fails where the port may speak even so.
func (wt *Part) silenced(id plan.PortID, changed bool) error {
	if changed {
		wt.activate()
		wt.host.Changed()
		wt.host.SettleNext()
	}
	if wt.isSilent(id) {
		return nil
	}
	if wt.host.Settle(); wt.isSilent(id) {
		return nil
	}
	return fmt.Errorf("port %s is not silent yet, the host tries it again: %s", id.Name, wt.host.Complaint())
}

// isSilent reports whether nothing passes a port by what is active in the kernel.
func (wt *Part) isSilent(id plan.PortID) bool {
	d := wt.host.Active().Applied
	if d == nil || wt.host.Partly() {
		return false
	}
	f := d.Facts[id]
	return !f.Up || f.Waits()
}
