package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/binding"
	"heddle/internal/dataplane/compile"
	"heddle/internal/diagnose"
	"heddle/internal/host/reach"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/spec/known"
	"heddle/internal/spec/printable"
	"heddle/internal/uplinks/teaming/teams"
)

// maintaining takes uplinks out of use for maintenance, and back into use.
type maintaining struct {
	*shared
	ports   *ports
	effect  *effect
	teaming *teaming
	trials  *trials
	changer *changer
}

// Maintain drains or blocks an uplink, or all members of a LAG, or takes it back into use. A drain or block by command
// stays until a command ends it, also when the agent or the host restarts; it ends with the uplink.
func (mt *maintaining) Maintain(ctx context.Context, q api.Maintain) (*api.Maintained, error) {
	out, applied := &api.Maintained{}, &api.Applied{DryRun: q.DryRun, Changes: []api.Change{}}
	if q.DryRun {
		return mt.rehearse(ctx, q, applied)
	}
	g := &guard{what: "uplink " + useVerb(q.Use) + " " + q.Uplink, within: q.ConfirmWithin}
	err := mt.trials.tried(ctx, mt.Do, g, applied, func() error {
		next, err := mt.foresee(q, out, applied)
		if err != nil || len(applied.Changes) == 0 {
			return err
		}
		err = mt.effect.timed(applied, q.ReadAt, func() error {
			return mt.changer.change(func() { mt.state.Maintenance = next })
		})
		if err == nil {
			mt.tell(out)
		}
		return err
	})
	out.Applied = applied
	return out, err
}

// rehearse returns what a command would do.
func (mt *maintaining) rehearse(ctx context.Context, q api.Maintain, applied *api.Applied) (*api.Maintained, error) {
	out := &api.Maintained{Applied: applied}
	var ask *needsAsking
	err := mt.Do(ctx, func() error {
		q := q
		q.Force = true // the answer says what it would cut off
		next, err := mt.foresee(q, out, applied)
		if err != nil {
			return err
		}
		_, after, err := mt.with(next)
		if err != nil {
			return err
		}
		risks := reach.Risks(mt.Active().Plan, after, mt.trials.reachHost())
		if len(risks) == 0 {
			return nil
		}
		interfaces, err := mt.trials.interfaces(risks)
		ask = &needsAsking{risks, interfaces, mt.trials.ownMACs()}
		return err
	})
	if err == nil && ask != nil {
		applied.Trial, err = mt.trials.plannedTrial(ctx, ask, "uplink "+useVerb(q.Use)+" "+q.Uplink, q.Window)
	}
	return out, err
}

// useVerb returns the name of the command that sets a use.
func useVerb(u api.UplinkUse) string {
	return map[api.UplinkUse]string{api.IsDrained: "drain", api.IsBlocked: "block", api.InUse: "restore"}[u]
}

// foresee finds the uplinks that a command is about, and computes what changes and which ports move. It refuses what
// must not be done.
func (mt *maintaining) foresee(q api.Maintain, out *api.Maintained, applied *api.Applied) ([]state.Maintenance, error) {
	if useVerb(q.Use) == "" {
		return nil, api.NewError(api.Invalid, fmt.Sprintf("%q is no use of an uplink: it is in-use, drained or blocked",
			q.Use))
	}
	sw, names, err := mt.named(q)
	if err != nil {
		return nil, err
	}
	*out = api.Maintained{Switch: sw.Name, Uplinks: names, Use: q.Use, Moves: []api.UplinkMove{}, CutOff: []string{}}
	out.Applied = applied
	applied.Changes = []api.Change{}
	next := mt.next(sw.Name, names, q.Use)
	now, after, err := mt.with(next)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		id := plan.PortID{Switch: sw.Name, Name: name}
		was, is := mt.Active().Plan.Uplink(id), after.Uplink(id)
		if err := mt.saidByFile(q.Use, is); err != nil {
			return nil, err
		}
		differs(applied, is, "drained", was.Drained, is.Drained)
		differs(applied, is, "blocked", was.Blocked, is.Blocked)
		if f := mt.Active().Applied.Facts[id]; f.HostTraffic && q.Use != api.InUse {
			applied.Warnings = append(applied.Warnings,
				fmt.Sprintf("uplink %s/%s: the host's own addresses on %s stay "+
					"on that device: without its link they are cut off", sw.Name, name, is.Device))
		}
	}
	rehomed(out, mt.Active().Applied, now, sw)
	if len(out.CutOff) > 0 && q.Use != api.InUse && !q.Force {
		return nil, api.NewError(api.Invalid, fmt.Sprintf("%s no other uplink that can be used, and would be cut off: "+
			"%s; give --force to do it all the same", printable.Count(len(out.CutOff), "port has", "ports have"),
			known.List(out.CutOff)))
	}
	return next, nil
}

func differs(applied *api.Applied, u *plan.Uplink, field string, was, is bool) {
	if was != is {
		applied.Changes = append(applied.Changes, api.Change{Kind: api.Changed,
			Object: api.ObjectRef{Kind: api.UplinkObject, Switch: u.ID.Switch, Name: u.ID.Name}, Field: field,
			Old: plan.FieldValueOf(was), New: plan.FieldValueOf(is)})
	}
}

// named returns the uplinks that a command names.
func (mt *maintaining) named(q api.Maintain) (at *plan.Switch, names []string, err error) {
	n := known.Names{What: "uplink", Else: map[string]string{}}
	if q.Switch != "" {
		n.Owner = "switch " + q.Switch
	}
	var on []string
	for _, sw := range mt.Active().Plan.Switches {
		if q.Switch != "" && q.Switch != sw.Name {
			continue
		}
		for _, u := range sw.Uplinks {
			n.All = append(n.All, u.ID.Name)
			n.Else[u.Device] = "the device of uplink " + u.ID.Name
		}
		u, g := sw.Uplink(q.Uplink), sw.LAG(q.Uplink)
		switch {
		case u != nil:
			names = []string{u.ID.Name}
		case g != nil:
			names = slices.Clone(g.Uplinks)
		default:
			continue
		}
		at, on = sw, append(on, sw.Name)
	}
	delete(n.Else, "")
	switch {
	case q.Switch != "" && mt.Active().Plan.Switch(q.Switch) == nil:
		return nil, nil, api.NewError(api.NotFound, mt.noSwitch(q.Switch))
	case len(on) == 0:
		return nil, nil, api.NewError(api.NotFound, n.Missing(q.Uplink))
	case len(on) > 1:
		return nil, nil, api.NewError(api.Invalid, fmt.Sprintf("switches %s have an uplink %s: say which with --switch",
			strings.Join(on, " and "), q.Uplink))
	}
	return at, names, nil
}

func (mt *maintaining) noSwitch(name string) string {
	n := known.Names{What: "switch"}
	for _, sw := range mt.Active().Plan.Switches {
		n.All = append(n.All, sw.Name)
	}
	return n.Missing(name)
}

// saidByFile is the error for an uplink that a command takes back into use although the configuration file keeps it out
// of use.
func (mt *maintaining) saidByFile(use api.UplinkUse, is *plan.Uplink) error {
	field := map[bool]string{true: "drained", false: "blocked"}[is.Drained]
	if use != api.InUse || !is.Drained && !is.Blocked || mt.state.MaintenanceOf(is.ID) != nil {
		return nil
	}
	return api.NewError(api.Invalid, fmt.Sprintf("the configuration file says that uplink %s is %s: set "+
		"switches[%s].uplinks[%s].%s to false, then run \"heddle apply -f FILE\"", is.ID, field, is.ID.Switch,
		is.ID.Name, field))
}

// next returns the uplinks that will be drained or blocked by command.
func (mt *maintaining) next(sw string, names []string, use api.UplinkUse) []state.Maintenance {
	list := slices.Clone(mt.state.Maintenance)
	for _, name := range names {
		m := state.Maintenance{ID: plan.PortID{Switch: sw, Name: name}, Blocked: use == api.IsBlocked,
			Since: time.Now().UTC()}
		i := slices.IndexFunc(list, func(o state.Maintenance) bool { return o.ID == m.ID })
		switch {
		case use == api.InUse && i >= 0:
			list = slices.Delete(list, i, i+1)
		case use == api.InUse:
		case i < 0:
			list = append(list, m)
		case !list[i].Same(m):
			list[i] = m
		}
	}
	return list
}

// with returns what would be active, and its plan, if the list were the uplinks drained or blocked by command.
func (mt *maintaining) with(list []state.Maintenance) (*binding.Desired, *plan.Plan, error) {
	l := mt.ports.layers()
	l.uplinks = list
	cfg, _ := l.merge()
	p, err := mt.ports.resolve(cfg)
	if err != nil {
		return nil, nil, err
	}
	d := *mt.Active().Applied
	d.Plan, d.Facts = p, maps.Clone(d.Facts)
	teams.Form(&d, mt.teaming.formed())
	return &d, p, nil
}

// rehomed lists the ports of the switch that use other uplinks than before.
func rehomed(out *api.Maintained, was, is *binding.Desired, sw *plan.Switch) {
	after := is.Plan.Switch(sw.Name)
	for _, p := range sw.Ports {
		if _, connected := was.Facts[p.ID]; !connected {
			continue
		}
		from := compile.UplinksInUse(*was, sw, p)
		to := compile.UplinksInUse(*is, after, is.Plan.Port(p.ID))
		switch {
		case slices.Equal(from, to):
		case len(to) == 0:
			out.CutOff = append(out.CutOff, p.ID.Name)
		default:
			out.Moves = append(out.Moves, api.UplinkMove{Port: p.ID.Name, Host: p.Role == spec.Host, From: from,
				To: to})
		}
	}
}

// tell publishes what a command did with uplinks. Moved ports are reported as a failover.
func (mt *maintaining) tell(out *api.Maintained) {
	for _, name := range out.Uplinks {
		what := map[api.UplinkUse]string{api.IsDrained: "is drained", api.IsBlocked: "is blocked",
			api.InUse: "is back in use"}[out.Use]
		text := fmt.Sprintf("uplink %s %s, by command", name, what)
		mt.log.Info(text, "switch", out.Switch)
		mt.events.Publish(event.Event{Kind: event.Maintenance, Switch: out.Switch, Uplink: name, To: string(out.Use),
			Text: text})
	}
}

// hasUplink reports whether a configuration has the uplink.
func hasUplink(cfg *spec.Config, id plan.PortID) bool {
	return slices.ContainsFunc(cfg.Switches, func(s spec.Switch) bool {
		return s.Name == id.Switch && slices.ContainsFunc(s.Uplinks, func(u spec.Uplink) bool {
			return u.Name == id.Name
		})
	})
}

// forgetMaintenance removes the drains and blocks of uplinks that no longer exist.
func (ps *ports) forgetMaintenance() {
	gone := func(m state.Maintenance) bool { return !hasUplink(ps.cfg, m.ID) }
	if slices.ContainsFunc(ps.state.Maintenance, gone) {
		ps.state.Maintenance = slices.DeleteFunc(slices.Clone(ps.state.Maintenance), gone)
	}
}

// maintained returns notes about the uplinks of a configuration that commands have taken out of use.
func (ps *ports) maintained(cfg *spec.Config) (lines []string) {
	for _, m := range ps.state.Maintenance {
		if !hasUplink(cfg, m.ID) {
			continue
		}
		what := "drained"
		if m.Blocked {
			what = "blocked"
		}
		lines = append(lines, fmt.Sprintf("uplink %s is %s by command since %s, whatever the file says: take it back "+
			"with \"%s\"", m.ID, what, m.Since.Local().Format(time.DateTime),
			diagnose.Command(ps.plan, m.ID, "uplink restore")))
	}
	return lines
}
