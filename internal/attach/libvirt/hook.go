package libvirt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"heddle/internal/api"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
	"heddle/internal/spec/known"
)

// Agent is what the hook needs of an agent.
type Agent interface {
	State(context.Context) (*api.State, error)
	Reconnect(context.Context, api.Connect) (*api.Applied, error)
	Disconnect(context.Context, api.Disconnect) error
	Expect(context.Context, api.Expect) error
}

// Hook is one call of libvirt's qemu hook (libvirt.org/hooks.html).
type Hook struct {
	Agent Agent
	// Release takes a device out of its bridge; it is no error if it is in none.
	Release func(device string) error
	// FailOpen lets a domain start without its ports when no agent answers. A port group that does not exist still
	// refuses the start.
	FailOpen bool
	// Ended remembers for an agent that does not answer whether a domain, by its UUID, has ended here; false once it
	// starts again. nil for nobody.
	Ended func(uuid string, ended bool) error
	// Warn writes one line for the operator if the hook does not refuse.
	Warn func(format string, args ...any)
}

// Run does what the operation requires. An error refuses the operation, where libvirt allows a hook to do that:
// prepare, start, migrate, restore. In the other operations a refusal would hurt a running guest, or the guest is
// ending anyway, so the hook only warns.
func (h *Hook) Run(ctx context.Context, operation string, domainXML io.Reader) error {
	refuses := slices.Contains([]string{"prepare", "start", "migrate", "restore"}, operation)
	d, err := Parse(domainXML)
	if err == nil {
		err = h.run(ctx, operation, d)
	}
	switch {
	case err == nil:
		return nil
	case !refuses:
		h.Warn("%s: %s", operation, oneLine(err))
		return nil
	case h.FailOpen && !answered(err):
		h.Warn("%s: started without its ports: %s", operation, oneLine(err))
		return nil
	}
	return fmt.Errorf("%s refused: %s", operation, oneLine(err))
}

func (h *Hook) run(ctx context.Context, operation string, d *Domain) error {
	if slices.Contains([]string{"start", "reconnect", "attach"}, operation) {
		if err := h.notes(d, false); err != nil {
			h.Warn("forget that the domain had ended: %v", err)
		}
	}
	switch operation {
	case "prepare", "restore": // nothing exists yet: find faults early
		return h.check(ctx, d)
	case "migrate": // before memory is transferred; the next start waits for the guest
		return h.expect(ctx, d)
	case "start": // the tap exists, but QEMU does not run yet
		return h.connect(ctx, d, true)
	case "reconnect", "attach": // libvirtd came back to a running domain, or took one over
		return h.connect(ctx, d, false)
	case "stopped", "release":
		return h.ends(ctx, d)
	}
	return nil // "started", and operations of later versions of libvirt
}

// unreachable is the error that no agent answered.
type unreachable struct{ error }

func (u unreachable) Unwrap() error { return u.error }

// answered says whether the error is a deliberate answer: of the agent, or of this package.
func answered(err error) bool {
	var u unreachable
	return !errors.As(err, &u)
}

// asked distinguishes an agent's errors from failures to reach it.
func asked(err error) error {
	var answer *api.Error
	if err == nil || errors.As(err, &answer) {
		return err
	}
	return unreachable{err}
}

// check says whether the port groups that the domain names exist.
func (h *Hook) check(ctx context.Context, d *Domain) error {
	if !d.Ours() {
		return nil
	}
	if err := d.Check(); err != nil {
		return err
	}
	s, err := h.Agent.State(ctx)
	if err != nil {
		return asked(err)
	}
	for _, w := range d.wants() {
		if err := w.exists(s); err != nil {
			return err
		}
	}
	return nil
}

// expect is check for a domain that is about to arrive by a migration: its ports, which are connected next, wait for
// it.
func (h *Hook) expect(ctx context.Context, d *Domain) error {
	if err := h.check(ctx, d); err != nil || !d.Ours() {
		return err
	}
	return asked(h.Agent.Expect(ctx, api.Expect{Guest: d.owner(), Needs: d.Needs, Force: d.Force}))
}

// exists says whether the want's port group does.
func (w Want) exists(s *api.State) error {
	sw := w.Switch
	if sw == "" {
		if len(s.Switches) != 1 {
			return fmt.Errorf("port group %s: this host has %d switches: say which with switch='…'", w.PortGroup,
				len(s.Switches))
		}
		sw = s.Switches[0].Name
	}
	var groups []string
	for _, g := range s.PortGroups {
		if g.Switch == sw && g.Name == w.PortGroup {
			return nil
		}
		if g.Switch == sw {
			groups = append(groups, g.Name)
		}
	}
	var switches []string
	for _, v := range s.Switches {
		switches = append(switches, v.Name)
	}
	if !slices.Contains(switches, sw) {
		return fmt.Errorf("port group %s: %s", w.PortGroup, known.Names{What: "switch", Owner: "this host",
			All: switches}.Missing(sw))
	}
	return errors.New(known.Names{What: "port group", Owner: "switch " + sw, All: groups}.Missing(w.PortGroup))
}

// ends removes the domain's ports. If no agent answers, it is told at its start.
func (h *Hook) ends(ctx context.Context, d *Domain) error {
	err := h.drop(ctx, d, func(p api.Port) bool { return d.Owns(p.Name) || d.Has(p.Device) })
	var away unreachable
	if errors.As(err, &away) {
		return errors.Join(err, h.notes(d, true))
	}
	return err
}

// notes remembers for an agent that does not answer whether the domain has ended.
func (h *Hook) notes(d *Domain, ended bool) error {
	if h.Ended == nil || !d.Ours() || !spec.ValidUUID(d.UUID) {
		return nil
	}
	return h.Ended(strings.ToLower(d.UUID), ended)
}

// connect makes the domain's ports match its XML. The domain's other ports are removed: with start all of them,
// otherwise only those without one of its devices, so that a port connected by hand for a plugged adapter stays. Ports
// that it has under another name, since it was renamed, are removed once they have no device.
func (h *Hook) connect(ctx context.Context, d *Domain, start bool) error {
	if !d.Ours() {
		return nil
	}
	ports, err := d.Connects()
	if err != nil {
		return err
	}
	// The tap of a network is in a bridge now, as it is after a restart of libvirtd. It must not stay there,
	// together with taps of other port groups, even if no agent answers.
	for _, p := range ports {
		if d.Bridged(p.Device) {
			if err := h.Release(p.Device); err != nil {
				return err
			}
		}
	}
	err = h.drop(ctx, d, func(p api.Port) bool {
		wanted := slices.ContainsFunc(ports, func(w api.Connect) bool { return w.Name == p.Name })
		if !d.Owns(p.Name) {
			return start && !wanted && (p.ReasonCode == problem.OwnerAwaited || p.ReasonCode == problem.DeviceMissing)
		}
		return !wanted && (start || !d.Has(p.Device))
	})
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range ports {
		_, err := h.Agent.Reconnect(ctx, p)
		if err == nil {
			continue
		}
		errs = append(errs, asked(err))
		if start {
			break
		}
	}
	if start && len(errs) > 0 {
		errs = append(errs, h.drop(ctx, d, func(p api.Port) bool { return d.Owns(p.Name) }))
	}
	return errors.Join(errs...)
}

// drop disconnects the run-time ports of the domain that match. A port is the domain's by its UUID. Of ports that
// nobody said whose they are, such as one connected by hand for a plugged adapter, it is one that has the domain's name
// and one of its devices, or none any more.
func (h *Hook) drop(ctx context.Context, d *Domain, match func(api.Port) bool) error {
	s, err := h.Agent.State(ctx)
	if err != nil {
		if !d.Ours() { // most likely there is nothing to do, and a host without an agent should not fail
			return nil
		}
		return asked(err)
	}
	var errs []error
	for _, p := range s.Ports {
		if p.Origin != api.FromRun || !d.isOwn(p) || !match(p) {
			continue
		}
		err := h.Agent.Disconnect(ctx, api.Disconnect{Port: p.Name, VM: p.VM})
		var answer *api.Error
		if errors.As(err, &answer) && answer.Kind == api.NotFound {
			continue // stopped and release follow closely on each other
		}
		errs = append(errs, asked(err))
	}
	return errors.Join(errs...)
}

// oneLine is an error in one line, for libvirt's log.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' }), "; ")
}
