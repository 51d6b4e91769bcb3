package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/binding"
	"heddle/internal/dataplane/compile"
	"heddle/internal/observe"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// Source is what the view of a host is made from.
type Source struct {
	Agent      api.AgentInfo
	Config     *spec.Config // the active one
	File       *spec.Config // as declared by the file; nil before there is one
	Controller *spec.Config // as declared by the controllers; nil for a host that follows none
	// Settings are what the controllers' definition sets for the static port that a run-time port is.
	Settings   func(port string) (spec.PortSettings, bool)
	Plan       *plan.Plan // of Config
	Applied    *binding.Desired
	Remembered *state.State
	Problems   map[plan.PortID]problem.Problem
	// Unattached returns why frames of a port do not reach the switch yet; none when they do.
	Unattached func(plan.PortID) problem.Problem
	// Before are the programs before the switch on the devices of ports and uplinks.
	Before map[plan.PortID][]api.ProgramBefore
	// Refused are the frames of guests that the policies of their ports refused.
	Refused map[plan.PortID][]api.Refusal
	// Flapping are MACs that go to and fro between a port and other hosts; nil for none at all.
	Flapping func(plan.PortID) []api.FlappingMAC
	// Device returns what is wrong with an uplink's device, and which settings the agent has changed on it.
	Device func(uplink plan.PortID) (warnings, changed []string)
	// Speed returns the speed that a device reports for its link, in bits per second; 0 if it reports none.
	Speed func(device string) float64
	Links Links
	Now   time.Time
}

// State returns everything that is active.
func (src Source) State() *api.State {
	s := &api.State{Agent: src.Agent, Switches: []api.Switch{}, PortGroups: []api.PortGroup{}, Uplinks: []api.Uplink{},
		Ports: []api.Port{}}
	for _, sw := range src.Plan.Switches {
		v := api.Switch{Name: sw.Name, Kind: sw.Kind, MTU: sw.MTU, Uplinks: []string{}, ReversePath: sw.ReversePath,
			ReversePathPromiscuous: sw.ReversePathPromiscuous, BlockGuestBPDU: sw.BlockGuestBPDU,
			IPFIX: api.IPFIXOf(sw.IPFIX)}
		for _, u := range sw.Uplinks {
			uv := src.uplink(sw, u)
			v.Uplinks = append(v.Uplinks, u.ID.Name)
			v.UplinksUp += one(uv.State == api.Up)
			s.Uplinks = append(s.Uplinks, uv)
		}
		if sw.Tunnel != nil {
			tv := src.tunnel(sw)
			v.Uplinks, v.UplinksUp = append(v.Uplinks, tv.Name), v.UplinksUp+one(tv.State == api.Up)
			s.Uplinks = append(s.Uplinks, tv)
		}
		perGroup := map[string][2]int{}
		own := compile.EffectiveMACs(sw, src.Applied.Facts)
		for i, p := range sw.Ports {
			pv := src.Port(sw, p, own[i].Violation)
			up := one(pv.State == api.Up)
			n := perGroup[p.PortGroup]
			perGroup[p.PortGroup] = [2]int{n[0] + 1, n[1] + up}
			v.Ports, v.PortsUp = v.Ports+1, v.PortsUp+up
			s.Ports = append(s.Ports, pv)
		}
		groups := src.groups(sw.Name, perGroup)
		v.PortGroups = len(groups)
		s.PortGroups = append(s.PortGroups, groups...)
		s.Switches = append(s.Switches, v)
	}
	return s
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// StateOf returns the state of a port or uplink, and why it is not up if it is not.
func (src Source) StateOf(id plan.PortID, blocked bool) (api.PortState, problem.Problem) {
	f, connected := src.Applied.Facts[id]
	why, waits := src.Problems[id], src.Unattached(id)
	switch {
	case !connected:
		return api.Pending, why
	case !waits.None():
		return api.Pending, waits
	case blocked || f.LoopBlocked != nil:
		return api.Blocked, why
	case !f.Up && why.None():
		return api.Down, problem.Of(problem.LinkDown)
	case !f.Up:
		return api.Down, why
	case f.Waits() && why.None():
		return api.Waiting, src.Remembered.WaitOf(id).Problem()
	case f.Waits():
		return api.Waiting, why
	case f.Out != nil:
		return api.Out, f.Out.Value()
	}
	return api.Up, why
}

// UplinkState returns the state of an uplink, and why it is not up if it is not.
func (src Source) UplinkState(u *plan.Uplink) (api.PortState, problem.Problem) {
	at, why := src.StateOf(u.ID, u.Blocked)
	if why.Code == problem.LinkDown {
		why.Kind = problem.UplinkKind
	}
	p := problem.Problem{Code: problem.Drained, Peer: u.ID.Name}
	m := src.Remembered.MaintenanceOf(u.ID)
	if m != nil {
		p.Since = m.Since
	}
	switch {
	case at == api.Blocked && why.None():
		if m != nil && !m.Blocked { // a command only drained an uplink that the configuration blocks
			p.Since = time.Time{}
		}
		p.Code = problem.UplinkBlocked
		return at, p
	case u.Drained && (at == api.Up && why.None() || at == api.Out):
		return api.Drained, p
	}
	return at, why
}

// Isolated says why no frame passes between a switch and the physical network: none of its uplinks is up, or it has
// overlay segments alone and their tunnel is not up. It is "" where one is up, and for a switch without any.
// maintained: all of them were taken out of use.
func (src Source) Isolated(sw *plan.Switch) (why string, maintained bool) {
	if len(sw.Uplinks) == 0 && sw.Tunnel != nil && len(sw.VNIs()) > 0 {
		state, p := src.StateOf(sw.Tunnel.ID, false)
		if state != api.Up {
			why = fmt.Sprintf("the tunnel of switch %s is %s: %s", sw.Name, state, cmp.Or(p.Text(), "not attached yet"))
		}
		return why, false
	}
	return src.isolated(sw, "switch "+sw.Name, func(string) bool { return true })
}

// CutOff says why no frame of a port with that team passes between it and the physical network; "" where an uplink of
// the team is up.
func (src Source) CutOff(sw *plan.Switch, group string, t plan.Teaming) string {
	team := slices.Concat(t.Active.V, t.Standby.V)
	for _, l := range sw.LAGs {
		if slices.Contains(team, l.Name) {
			team = append(team, l.Uplinks...)
		}
	}
	why, _ := src.isolated(sw, "port group "+sw.Name+"/"+group, func(uplink string) bool {
		return slices.Contains(team, uplink)
	})
	return why
}

// isolated looks at some of a switch's uplinks: those of what is named.
func (src Source) isolated(sw *plan.Switch, of string, counts func(uplink string) bool) (why string, maintained bool) {
	var each []string
	maintained = true
	for _, u := range sw.Uplinks {
		if !counts(u.ID.Name) {
			continue
		}
		state, p := src.UplinkState(u)
		if state == api.Up {
			return "", false
		}
		text := u.ID.Name
		if u.Device != "" {
			text += " (" + u.Device + ")"
		}
		each = append(each, text+": "+cmp.Or(p.Text(), string(state)))
		maintained = maintained && (u.Drained || u.Blocked)
	}
	if len(each) == 0 {
		return "", false
	}
	return fmt.Sprintf("no uplink of %s is up: %s", of, strings.Join(each, "; ")), maintained
}

// maintenance reports whether the uplink is drained or blocked, and by whom.
func (src Source) maintenance(u *plan.Uplink) *api.UplinkMaintenance {
	if !u.Drained && !u.Blocked {
		return nil
	}
	v := &api.UplinkMaintenance{Use: api.IsDrained}
	if u.Blocked {
		v.Use = api.IsBlocked
	}
	if m := src.Remembered.MaintenanceOf(u.ID); m != nil && (m.Blocked || !u.Blocked) {
		v.ByCommand, v.Since = true, m.Since
	}
	return v
}

// reason returns why a port is not in full service, as a sentence and as a code. Programs before the switch are added
// to the sentence, and give the code if there is no other.
func reason(why problem.Problem, list []api.ProgramBefore) (string, problem.Code) {
	switch before := api.Before(list); {
	case len(list) == 0:
		return why.Text(), why.Code
	case why.None():
		return before, problem.RunsBefore
	default:
		return why.Text() + "; " + before, why.Code
	}
}

func (src Source) uplink(sw *plan.Switch, u *plan.Uplink) api.Uplink {
	v := api.Uplink{Switch: sw.Name, Name: u.ID.Name, Device: u.Device, VLANs: u.VLANs, Number: u.Number,
		Monitoring: u.Monitoring.String()}
	var why problem.Problem
	v.State, why = src.UplinkState(u)
	if v.State == api.Up && why.None() {
		why = src.Links.Outside(u.ID)
	}
	v.Maintenance = src.maintenance(u)
	v.RunsBefore = src.Before[u.ID]
	v.Reason, v.ReasonCode = reason(why, v.RunsBefore)
	if f, ok := src.Applied.Facts[u.ID]; ok {
		v.MAC, v.MTU = f.DeviceMAC.String(), f.MTU
	}
	if v.State != api.Pending {
		v.Speed = uint64(src.Speed(u.Device))
	}
	v.Warnings, v.Changed = src.Device(u.ID)
	src.Links.add(sw, &v)
	return v
}

// Port returns the view of one port; violation is what its owner does against its policy, none for nothing.
func (src Source) Port(sw *plan.Switch, p *plan.Port, violation observe.Violation) api.Port {
	v := api.Port{
		Switch: p.ID.Switch, Name: p.ID.Name, PortGroup: p.PortGroup, Role: p.Role, Origin: api.FromFile,
		Number: p.Number,
		Device: p.Device, VLAN: p.Policy.VLAN.V, VNI: p.VNI, Addresses: p.Addresses, Promiscuous: "unknown",
		Overrides: src.overrides(p.ID.Name), Effective: p.Rows(),
	}
	if slices.ContainsFunc(src.Remembered.Ports, func(o spec.Port) bool { return o.Name == p.ID.Name }) {
		v.Origin = api.FromRun
	}
	if src.Controller != nil && slices.ContainsFunc(src.Controller.Ports, func(o spec.Port) bool {
		return o.Name == p.ID.Name
	}) {
		v.Origin = api.FromController
	}
	var why problem.Problem
	v.State, why = src.StateOf(p.ID, p.Policy.Blocked.V)
	v.RunsBefore = src.Before[p.ID]
	v.Reason, v.ReasonCode = reason(why, v.RunsBefore)
	v.Refused = src.Refused[p.ID]
	if src.Flapping != nil {
		v.Flapping = src.Flapping(p.ID)
	}
	if !p.InitialMAC.IsZero() {
		v.MAC = p.InitialMAC.String()
	}
	v.Owner, v.Siblings = p.Owner, siblings(sw, p)
	if n := src.Remembered.NICOf(p.ID.Name); n != nil {
		v.VM, v.Adapter, v.PortID, v.Conflict = n.VM, n.Adapter, n.ID, n.Trouble()
		if s, ok := src.Settings(p.ID.Name); ok {
			v.Label, v.Description = s.Name, s.Description
		}
	}
	if g := src.Remembered.GoodsOf(p.ID); g != nil {
		v.CountersLackSince, v.LeftOut = g.Lacks(), g.LeftOut
	}
	f, ok := src.Applied.Facts[p.ID]
	if !ok {
		return v
	}
	v.MTU = f.MTU
	if w := src.Remembered.WaitOf(p.ID); w != nil && f.Waits() {
		v.Wait = &api.Wait{Left: w.Left, Overdue: w.Overdue(src.Now), Why: w.Why.Text(), WhyCode: w.Why,
			Since: w.Since}
	}
	v.Uplinks = compile.UplinksInUse(*src.Applied, sw, p)
	if p.VNI != 0 && v.State == api.Up && why.None() && len(v.Uplinks) == 0 {
		why = problem.Problem{Code: problem.NoUplink, Kind: spec.TunnelName, Peer: spec.TunnelName}
		v.Reason, v.ReasonCode = reason(why, v.RunsBefore)
	}
	if team := slices.Concat(p.Policy.Teaming.Active.V, p.Policy.Teaming.Standby.V); v.State == api.Up &&
		p.VNI == 0 && why.None() && len(v.Uplinks) == 0 && len(team) > 0 {
		why = problem.Problem{Code: problem.NoUplink, Peer: strings.Join(team, ", ")}
		v.Reason, v.ReasonCode = reason(why, v.RunsBefore)
	}
	v.Violation, v.ViolationCode = violation.Text(), violation.Code
	v.Promiscuous = map[plan.Asks]string{plan.AsksYes: "yes", plan.AsksNo: "no",
		plan.AsksUnknown: "unknown"}[f.Promiscuous]
	if !f.SeenMAC.IsZero() {
		v.SeenMAC = f.SeenMAC.String()
	}
	return v
}

// overrides returns the fields of a port that commands have set.
func (src Source) overrides(port string) []api.Override {
	o, some := src.Remembered.Overrides[port]
	if !some {
		return nil
	}
	var declared spec.Port
	if src.File != nil {
		if i := slices.IndexFunc(src.File.Ports, func(p spec.Port) bool { return p.Name == port }); i >= 0 {
			declared = src.File.Ports[i]
		}
	}
	return Overrides(o, declared)
}

// Overrides returns the fields of a port that commands have set, with the values that the file declares for them.
func Overrides(o state.Override, declared spec.Port) (list []api.Override) {
	if o.Blocked != nil {
		v := api.Override{Field: "blocked", Value: plan.FieldValueOf(*o.Blocked)}
		if declared.Blocked != nil {
			v.File = plan.FieldValueOf(*declared.Blocked)
		}
		list = append(list, v)
	}
	if o.PortGroup != "" {
		v := api.Override{Field: "portGroup", Value: plan.FieldValueOf(o.PortGroup)}
		if declared.PortGroup != "" {
			v.File = plan.FieldValueOf(declared.PortGroup)
		}
		list = append(list, v)
	}
	return list
}

// siblings returns the names of the ports whose MACs a port may use.
func siblings(sw *plan.Switch, p *plan.Port) (names []string) {
	if p.Family() == "" {
		return nil
	}
	for _, q := range sw.Ports {
		if q != p && q.Family() == p.Family() {
			names = append(names, q.ID.Name)
		}
	}
	return names
}

// groups returns the port groups of a switch with what their ports inherit: the effective policy of a port that sets
// nothing for itself.
func (src Source) groups(name string, ports map[string][2]int) []api.PortGroup {
	k := slices.IndexFunc(src.Config.Switches, func(s spec.Switch) bool { return s.Name == name })
	if k < 0 {
		return nil
	}
	s := &src.Config.Switches[k]
	bare := &spec.Config{Switches: []spec.Switch{*s}}
	for i, g := range s.PortGroups {
		bare.Ports = append(bare.Ports, spec.Port{Name: fmt.Sprintf("_group-%d", i), Switch: s.Name, PortGroup: g.Name})
	}
	resolved, err := plan.Resolve(bare, nil)
	groups := make([]api.PortGroup, len(s.PortGroups))
	for i, g := range s.PortGroups {
		groups[i] = api.PortGroup{Switch: s.Name, Name: g.Name, Ports: ports[g.Name][0], PortsUp: ports[g.Name][1],
			Overrides: overridable(g.Overrides), Reset: g.Overrides.Resets(), Policy: []plan.Row{}}
		if err == nil {
			p := resolved.Switches[0].Ports[i]
			groups[i].VLAN, groups[i].VNI, groups[i].Policy = p.Policy.VLAN.V, p.VNI, p.Rows()
		}
	}
	return groups
}

// overridable returns the kinds of settings that a single port may set for itself.
func overridable(o spec.Overrides) []string {
	names := []string{}
	for _, category := range spec.Categories() {
		if o.Allows(category) {
			names = append(names, category)
		}
	}
	return names
}
