package agent

import (
	"slices"

	"heddle/internal/agent/part"
	"heddle/internal/agent/standby"
	"heddle/internal/agent/state"
	"heddle/internal/dataplane"
	"heddle/internal/plan"
)

// newStandby returns the ports whose guests run elsewhere.
func newStandby(s *shared, ps *ports, ef *effect, st *settler, t *teaming, parts *part.Table) *standby.Part {
	return standby.New(standby.Host{Reader: s.Reader, Log: s.log, Events: s.events, Complain: s.Complain,
		Kernel: func() dataplane.Waits { return s.kernel.Waits() }, Document: s.state, Waits: &s.state.Waits,
		Last: &s.state.LastWait, HasDevice: func(id plan.PortID) bool { return s.state.Of(id) != nil },
		Activate: t.activate, Partly: func() bool { return ef.redo }, Announce: t.announceAwake, GiveMAC: ps.giveMAC,
		Changed: parts.PresenceChanged, Followed: parts.Succeed, Settle: st.settle, SettleSoon: st.settleSoon,
		SettleNext: st.settleNext, Complaint: s.Complaint})
}

// activate changes facts of what is active at once, if what is active is what the plan wants.
func (t *teaming) activate(edit func(plan.Facts)) error {
	if !t.effect.changes() {
		return nil
	}
	now, err := t.effect.change(edit, t.formed())
	if err != nil {
		return err
	}
	t.moved(now)
	return nil
}

// giveMAC returns to a run-time port the MAC that it lacked during a wait.
func (ps *ports) giveMAC(w *state.Wait) {
	ps.state.Ports = slices.Clone(ps.state.Ports)
	if run := ps.connected.port(w.ID.Name); run != nil {
		w.Give(run)
	}
	ps.cfg, _ = ps.layers().merge()
}
