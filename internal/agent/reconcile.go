package agent

import (
	"errors"
	"reflect"
	"slices"

	"heddle/internal/agent/active"
	"heddle/internal/agent/devices"
	"heddle/internal/agent/held"
	"heddle/internal/agent/part"
	"heddle/internal/agent/standby"
	"heddle/internal/agent/tunnels"
	"heddle/internal/binding"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/uplinks/teaming/teams"
)

// reconciler makes the kernel match the desired state, with the help of all the owners before it.
type reconciler struct {
	*shared
	ports     *ports
	effect    *effect
	settler   *settler
	attaching *attaching
	chains    *chains
	reporter  *reporter
	teaming   *teaming
	holding   *held.Part
	restoring *held.Restoring
	waiting   *standby.Part
	dated     *dated
	tunnels   *tunnels.Tunnels

	parts  *part.Table
	wanted active.Want // by the parts, at the last reconcile
}

// reconcile makes the kernel match the configuration and the devices. It may be called at any time and does nothing if
// nothing changed. After an error, the next call does what is left.
func (rc *reconciler) reconcile() error {
	defer func(before bool) { rc.settler.settling = before }(rc.settler.settling)
	rc.settler.settling = true
	for asked := 1; ; {
		again, err := rc.round()
		switch {
		case again:
		case err != nil || !rc.asked():
			return err
		case asked == mostAsked:
			rc.settler.late = errors.Join(rc.settler.late, errors.New("the parts of the agent want something else "+
				"each time: restart the agent, and report it"))
			return nil
		default:
			asked++
		}
	}
}

// mostAsked bounds the rounds that parts ask for: what they want depends on what is active and on their own documents,
// so that it does not change any more after one or two.
const mostAsked = 3

// asked reports whether parts want something else than the last round made.
func (rc *reconciler) asked() bool { return !rc.parts.Want(rc.Active()).Equal(rc.wanted) }

// round makes the plan and what it needs; again asks for another round by a changed configuration.
func (rc *reconciler) round() (again bool, err error) {
	now, fresh, err := rc.ports.draft()
	if err != nil {
		return false, err
	}
	if rc.waiting.Keep(now) {
		rc.ports.stale = true
		return true, nil
	}
	defer func() {
		if err != nil { // what is wrong with ports is shown even so
			rc.effect.current.Settled(now)
		}
	}()
	bounds, err := rc.holding.Bind(now, fresh)
	if err != nil {
		return false, err
	}
	changed, errHold := rc.holding.Take(now, bounds)
	if errHold != nil && rc.effect.commanded {
		return false, errHold
	}
	if errHold != nil { // most likely a full disk: the held devices are served even so
		bounds = rc.holding.InHand(now, bounds, errHold)
	}
	if changed {
		// The held devices affect the plan: initial MACs, and overrides that ended. The second time nothing changes.
		rc.ports.stale = true
		return true, nil
	}
	now.Bounds = bounds
	errPrepare := errors.Join(errHold, rc.prepare(now, bounds))
	return false, rc.activate(now, bounds, errPrepare)
}

// prepare makes the devices ready for what the plan wants of them.
func (rc *reconciler) prepare(now *active.Draft, bounds []active.Bound) error {
	err := rc.holding.Prepare(now, bounds)
	rc.adoptMACs(now)
	rc.teaming.lags.Judge(now.Plan, lagDevices(bounds))
	rc.parts.Prepare(now)
	rc.restoring.Settled()
	now.Want = rc.parts.Want(rc.Active())
	rc.wanted = now.Want
	return err
}

// activate makes the plan active if the kernel has another one, and tells everybody. errPrepare is what failed before,
// which hinders nothing.
func (rc *reconciler) activate(now *active.Draft, bounds []active.Bound, errPrepare error) error {
	desired := rc.desired(now, bounds)
	formed := teams.Form(&desired, rc.teaming.formed())
	rc.state.Uses = formed.Remember(desired.Plan)
	was := rc.Active().Applied
	activates := was == nil || rc.effect.redo || !reflect.DeepEqual(*was, desired)
	if activates {
		if err := rc.effect.activate(desired); err != nil {
			return errors.Join(errPrepare, err)
		}
	}
	rc.effect.current.Settled(now)
	if activates {
		rc.dated.soon()
		rc.teaming.moved(formed)
		rc.attaching.attach(firstTurn)
	}
	rc.teaming.followBonds(bounds, formed)
	rc.teaming.followLinks(bounds)
	errRelease := errors.Join(rc.holding.ReleaseAll(), rc.tunnels.Tidy())
	rc.chains.noteStrangers(bounds)
	rc.dated.watch()
	rc.reporter.report()
	rc.tellParts(bounds)
	errSave := rc.ports.save()
	if errSave != nil && rc.effect.commanded && !activates {
		return errors.Join(errPrepare, errSave) // activate has saved what it activated; nobody else has saved this
	}
	// A failure here does not undo what is active and saved; the rest is tried again.
	rc.settler.late = errors.Join(errRelease, errSave)
	return errPrepare
}

// adoptMACs gives vNIC ports without a configured MAC the address that their owner's adapter had when it was connected:
// later changes count as changes (S3). A MAC that another port of the switch has is not taken.
func (rc *reconciler) adoptMACs(now *active.Draft) {
	for _, sw := range now.Plan.Switches {
		if !slices.ContainsFunc(sw.Ports, func(p *plan.Port) bool { return p.InitialMAC.IsZero() }) {
			continue
		}
		taken := make(map[plan.MAC]string, len(sw.Ports))
		for _, p := range sw.Ports {
			if !p.InitialMAC.IsZero() {
				taken[p.InitialMAC] = p.ID.Name
			}
		}
		for _, p := range sw.Ports {
			h := rc.state.Of(p.ID)
			if !p.InitialMAC.IsZero() || h == nil || h.MAC.IsZero() {
				continue
			}
			if other, dup := taken[h.MAC]; dup {
				now.Report(p.ID, problem.Problem{Code: problem.DuplicateMAC, MAC: h.MAC.String(), Peer: other})
				continue
			}
			p.InitialMAC = h.MAC
			taken[h.MAC] = p.ID.Name
		}
	}
}

// desired returns the desired state of the kernel.
func (rc *reconciler) desired(now *active.Draft, bounds []active.Bound) binding.Desired {
	rc.teaming.watchLinks(now.Plan)
	d := binding.Desired{Plan: now.Plan, Facts: make(plan.Facts, len(bounds)),
		Attachments: make(map[plan.PortID]binding.Attachment, len(bounds))}
	for _, b := range bounds {
		if b.Uplink != nil {
			f := devices.UplinkFact(b.Device)
			f.Out = rc.teaming.whyOut(b.ID).Ref()
			d.Facts[b.ID] = f
			d.Attachments[b.ID] = binding.Attachment{Ifindex: b.Device.Index}
			continue
		}
		f := devices.PortFact(b.Device)
		if why := rc.waiting.Fact(b.ID, &f); !why.None() && !now.Reported(b.ID) {
			now.Report(b.ID, why)
		}
		// While the guest runs elsewhere, what its QEMU here does not show is no problem.
		if why := rc.waiting.Onto(b.Port, &f); !why.None() && !now.Reported(b.ID) &&
			!rc.waiting.Elsewhere(b.ID) {
			now.Report(b.ID, why)
		}
		f.Assigned = rc.state.AssignedTo(b.Port)
		if why := now.Want.Blocked[b.ID]; !why.None() {
			f.LoopBlocked = why.Ref()
			now.Report(b.ID, why)
		}
		now.TakeDown(b.ID, &f)
		d.Facts[b.ID] = f
		d.Attachments[b.ID] = devices.Attachment(b.Device)
	}
	rc.tunnels.Bind(now, &d)
	if len(rc.state.Waits) > 0 {
		for _, sw := range now.Plan.Switches {
			rc.waiting.Rivals(now, sw, d.Facts)
		}
	}
	return d
}
