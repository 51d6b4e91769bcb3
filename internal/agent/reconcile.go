package agent

import (
	"errors"
	"reflect"
	"slices"

	"heddle/internal/agent/devices"
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
	looping   *looping
	holding   *holding
	routing   *routing
	waiting   *waiting
	flowing   *flowing
	dated     *dated
	tunnels   *tunnels

	followers []follower
}

// reconcile makes the kernel match the configuration and the devices. It may be called at any time and does nothing if
// nothing changed. After an error, the next call does what is left.
func (rc *reconciler) reconcile() error {
	defer func(before bool) { rc.settler.settling = before }(rc.settler.settling)
	rc.settler.settling = true
	fresh, err := rc.ports.freshen()
	if err != nil {
		return err
	}
	if rc.waiting.keepWaits() {
		rc.ports.stale = true
		return rc.reconcile()
	}
	rc.effect.problems = map[plan.PortID]problem.Problem{}
	bounds, err := rc.holding.bind(fresh, rc.holding.restoring.doubt)
	if err != nil {
		return err
	}
	changed, errHold := rc.holding.takeHold(bounds)
	if errHold != nil && rc.effect.commanded {
		return errHold
	}
	if errHold != nil { // most likely a full disk: the held devices are served even so
		bounds = rc.holding.inHand(bounds, errHold)
	}
	if changed {
		// The held devices affect the plan: initial MACs, and overrides that ended. The second time nothing changes.
		rc.ports.stale = true
		return rc.reconcile()
	}
	errPrepare := errors.Join(errHold, rc.holding.prepareAll(bounds), rc.holding.keepSettings(bounds),
		rc.holding.keepARPApart(bounds), rc.holding.tuneUplinks(bounds))
	rc.routing.setAll(bounds)
	rc.holding.restoring.settled()
	rc.adoptMACs()
	rc.teaming.lags.Judge(rc.ports.plan, lagDevices(bounds))
	rc.looping.seeLoops(bounds)
	desired := rc.desired(bounds)
	formed := teams.Form(&desired, rc.teaming.formed())
	rc.state.Uses = formed.Remember(desired.Plan)
	activates := rc.effect.applied == nil || rc.effect.redo || !reflect.DeepEqual(*rc.effect.applied, desired)
	if activates {
		if err := rc.effect.activate(desired); err != nil {
			return errors.Join(errPrepare, err)
		}
		rc.dated.soon()
		rc.teaming.moved(formed)
		rc.attaching.attach(firstTurn)
	}
	rc.teaming.followBonds(bounds, formed)
	rc.teaming.followLinks(bounds)
	errRelease := errors.Join(rc.holding.releaseAll(), rc.tunnels.tidy())
	rc.chains.noteStrangers(bounds)
	rc.dated.watch()
	rc.reporter.report()
	rc.looping.tellLoops(rc.looping.changes())
	rc.tellFollowers(bounds)
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
func (rc *reconciler) adoptMACs() {
	for _, sw := range rc.ports.plan.Switches {
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
				rc.effect.problems[p.ID] = problem.Problem{Code: problem.DuplicateMAC, MAC: h.MAC.String(), Peer: other}
				continue
			}
			p.InitialMAC = h.MAC
			taken[h.MAC] = p.ID.Name
		}
	}
}

// desired returns the desired state of the kernel.
func (rc *reconciler) desired(bounds []bound) binding.Desired {
	rc.teaming.watchLinks()
	d := binding.Desired{Plan: rc.ports.plan, Facts: make(plan.Facts, len(bounds)),
		Attachments: make(map[plan.PortID]binding.Attachment, len(bounds))}
	for _, b := range bounds {
		if b.uplink != nil {
			f := devices.UplinkFact(b.device)
			f.Out = rc.teaming.whyOut(b.id).Ref()
			d.Facts[b.id] = f
			d.Attachments[b.id] = binding.Attachment{Ifindex: b.device.Index}
			continue
		}
		f := devices.PortFact(b.device)
		if why := rc.waiting.waitFact(b.id, &f); !why.None() && rc.effect.problems[b.id].None() {
			rc.effect.problems[b.id] = why
		}
		// While the guest runs elsewhere, what its QEMU here does not show is no problem.
		if why := rc.waiting.adapters.Onto(b.port, &f); !why.None() && rc.effect.problems[b.id].None() &&
			!rc.waiting.elsewhere(b.id) {
			rc.effect.problems[b.id] = why
		}
		f.Assigned = rc.state.AssignedTo(b.port)
		if why := rc.looping.problem(b.id); !why.None() {
			f.LoopBlocked, rc.effect.problems[b.id] = why.Ref(), why
		}
		d.Facts[b.id] = f
		d.Attachments[b.id] = devices.Attachment(b.device)
	}
	rc.tunnels.bind(&d)
	if len(rc.state.Waits) > 0 {
		for _, sw := range rc.ports.plan.Switches {
			rc.waiting.rivals(sw, d.Facts)
		}
	}
	return d
}
