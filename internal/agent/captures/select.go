package captures

import (
	"fmt"
	"slices"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/spec/known"
)

// selection translates a client's request into the kernel's selection; the error lists all faults.
func selection(p *plan.Plan, q api.Capture) (dataplane.Selection, error) {
	s := dataplane.Selection{Snap: q.Snap}
	var faults, missing []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	switches := switchesNamed(p, q.Switch)
	if q.Switch != "" && len(switches) == 0 {
		missing = append(missing, known.Names{What: "switch", All: switchNames(p)}.Missing(q.Switch))
	}
	one := func(what, name string, ports bool) {
		switch ids, all := portsNamed(switches, name, ports); {
		case len(ids) == 1:
			s.Ports = append(s.Ports, ids[0])
		case len(ids) > 1:
			fault("%s is in %d switches: say which with --switch", known.Shown(name), len(ids))
		case name == spec.TunnelName && len(switches) > 0:
			missing = append(missing, noTunnel(q.Switch))
		case len(switches) > 0: // else it is the switch that does not exist
			all.What = what
			missing = append(missing, all.Missing(name))
		}
	}
	for _, name := range q.Ports {
		one("port or uplink", name, true)
	}
	for _, name := range q.Uplinks {
		one("uplink", name, false)
	}
	missing = append(missing, selectSegments(&s, switches, q.Segments, fault)...)
	selectStages(&s, q, fault)
	s.Filter = filterOf(q)
	if err := dataplane.CheckFilter(s.Filter); err != nil {
		fault("%v", err)
	}
	if q.Snap < 0 || q.Snap > abi.MaxSnap {
		fault("snap length %d: it is 1 to %d bytes, or 0 for whole frames", q.Snap, abi.MaxSnap)
	}
	if q.Snap == 0 {
		s.Snap = abi.MaxSnap
	}
	switch {
	case len(faults) > 0:
		return s, api.NewError(api.Invalid, slices.Concat(missing, faults)...)
	case len(missing) > 0:
		return s, api.NewError(api.NotFound, missing...)
	}
	return s, nil
}

func filterOf(q api.Capture) (f []abi.FilterInstruction) {
	for _, in := range q.Filter {
		f = append(f, abi.FilterInstruction{Code: in.Code, JumpTrue: in.JumpTrue, JumpFalse: in.JumpFalse, K: in.K})
	}
	return f
}

func switchesNamed(p *plan.Plan, name string) []*plan.Switch {
	var all []*plan.Switch
	for _, sw := range p.Switches {
		if name == "" || sw.Name == name {
			all = append(all, sw)
		}
	}
	return all
}

func switchNames(p *plan.Plan) (names []string) {
	for _, sw := range p.Switches {
		names = append(names, sw.Name)
	}
	return names
}

// portsNamed returns the uplinks, and with ports set also the ports, of that name, and all existing names.
func portsNamed(switches []*plan.Switch, name string, ports bool) (ids []plan.PortID, all known.Names) {
	all.Else = map[string]string{}
	look := func(id plan.PortID, device string) {
		all.Else[device] = "the device of " + id.Name
		if all.All = append(all.All, id.Name); id.Name == name {
			ids = append(ids, id)
		}
	}
	for _, sw := range switches {
		for _, u := range sw.Uplinks {
			look(u.ID, u.Device)
		}
		if sw.Tunnel != nil {
			look(sw.Tunnel.ID, sw.Tunnel.Device)
		}
		for _, port := range sw.Ports {
			if ports {
				look(port.ID, port.Device)
			} else {
				all.Else[port.ID.Name] = "a port"
			}
		}
	}
	return ids, all
}

func selectStages(s *dataplane.Selection, q api.Capture, fault func(string, ...any)) {
	for _, word := range q.Stages {
		i := slices.Index(api.Stages(), word)
		if i < 0 {
			fault("%s", known.Names{What: "stage", All: api.Stages()}.Missing(word))
			continue
		}
		s.Stages = append(s.Stages, abi.CaptureAdmit+i)
	}
	var names []string
	for r := range abi.Reasons() {
		names = append(names, r.String())
	}
	for _, word := range q.Reasons {
		r, ok := abi.ParseReason(word)
		if !ok || r == abi.ReasonNone {
			fault("%s", known.Names{What: "reason", All: names}.Missing(word))
			continue
		}
		s.Reasons = append(s.Reasons, r)
	}
	switch {
	case len(s.Stages) == 0 && len(q.Reasons) > 0:
		s.Stages = []int{abi.CaptureDrop} // only drops have a reason
	case len(s.Stages) == 0:
		s.Stages = []int{abi.CaptureAdmit, abi.CaptureDeliver, abi.CaptureDrop}
	case len(q.Reasons) > 0 && !slices.Contains(s.Stages, abi.CaptureDrop):
		fault("only what is dropped has a reason: add --stage drop, or leave out --stage")
	}
}
