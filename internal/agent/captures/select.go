package captures

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// maxVLAN is the highest VLAN number there is.
const maxVLAN = 4094

// selection makes of what a client asks for what the kernel is asked for; the faults are all that there are.
func selection(p *plan.Plan, q api.Capture) (dataplane.Selection, error) {
	s := dataplane.Selection{Snap: q.Snap}
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	switches := switchesNamed(p, q.Switch)
	if q.Switch != "" && len(switches) == 0 {
		fault("there is no switch %q%s: see \"heddle switch list\"", q.Switch, meant(q.Switch, switchNames(p)))
	}
	for _, name := range q.Ports {
		ids, all := portsNamed(switches, name, true)
		s.Ports = appendOne(s.Ports, ids, "port", name, all, fault)
	}
	for _, name := range q.Uplinks {
		ids, all := portsNamed(switches, name, false)
		s.Ports = appendOne(s.Ports, ids, "uplink", name, all, fault)
	}
	selectSegments(&s, switches, q.Segments, fault)
	selectStages(&s, q, fault)
	for _, in := range q.Filter {
		s.Filter = append(s.Filter, abi.FilterInstruction{Code: in.Code, JumpTrue: in.JumpTrue, JumpFalse: in.JumpFalse, K: in.K})
	}
	if err := dataplane.CheckFilter(s.Filter); err != nil {
		fault("%v", err)
	}
	if q.Snap < 0 || q.Snap > abi.MaxSnap {
		fault("snap length %d: it is 1 to %d bytes, or 0 for whole frames", q.Snap, abi.MaxSnap)
	}
	if q.Snap == 0 {
		s.Snap = abi.MaxSnap
	}
	if len(faults) > 0 {
		return s, api.NewError(api.Invalid, faults...)
	}
	return s, nil
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

// portsNamed gives the uplinks, and with ports the ports too, of the name, and all the names there are.
func portsNamed(switches []*plan.Switch, name string, ports bool) (ids []plan.PortID, all []string) {
	look := func(id plan.PortID) {
		if all = append(all, id.Name); id.Name == name {
			ids = append(ids, id)
		}
	}
	for _, sw := range switches {
		for _, u := range sw.Uplinks {
			look(u.ID)
		}
		for _, port := range sw.Ports {
			if ports {
				look(port.ID)
			}
		}
	}
	return ids, all
}

func appendOne(to, ids []plan.PortID, what, name string, all []string, fault func(string, ...any)) []plan.PortID {
	switch len(ids) {
	case 0:
		fault("there is no %s %q%s: see \"heddle %s list\"", what, name, meant(name, all), what)
	case 1:
		to = append(to, ids[0])
	default:
		fault("%d switches have a %s %q: say which with --switch", len(ids), what, name)
	}
	return to
}

func selectSegments(s *dataplane.Selection, switches []*plan.Switch, words []string, fault func(string, ...any)) {
	if len(words) == 0 {
		return
	}
	switch {
	case len(s.Ports) > 0 && slices.ContainsFunc(s.Ports, func(id plan.PortID) bool { return id.Switch != s.Ports[0].Switch }):
		fault("segments are those of one switch, and the ports are of several: capture them one switch at a time")
	case len(s.Ports) > 0:
		s.Switch = s.Ports[0].Switch
	case len(switches) == 1:
		s.Switch = switches[0].Name
	case len(switches) > 1:
		fault("segments are those of one switch, and there are %d: say which with --switch", len(switches))
	}
	for _, w := range words {
		list, ok := parseSegments(w)
		if !ok {
			fault("segment %q: it is a VLAN such as 10, a range such as 10-20, \"untagged\", or of 802.1ad ad:10", w)
		}
		s.Segments = append(s.Segments, list...)
	}
}

func parseSegments(word string) ([]dataplane.Segment, bool) {
	if word == "untagged" {
		return []dataplane.Segment{{}}, true
	}
	rest, ad := strings.CutPrefix(word, "ad:")
	from, to, isRange := strings.Cut(rest, "-")
	if !isRange {
		to = from
	}
	first, err1 := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	if err1 != nil || err2 != nil || first < 0 || last > maxVLAN || first > last {
		return nil, false
	}
	var list []dataplane.Segment
	for vid := first; vid <= last; vid++ {
		list = append(list, dataplane.Segment{VLAN: uint16(vid), AD: ad && vid > 0})
	}
	return list, true
}

func selectStages(s *dataplane.Selection, q api.Capture, fault func(string, ...any)) {
	for _, word := range q.Stages {
		i := slices.Index(api.Stages(), word)
		if i < 0 {
			fault("there is no stage %q%s: the stages are %s", word, meant(word, api.Stages()), strings.Join(api.Stages(), ", "))
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
			fault("there is no reason %q%s: the reasons are %s", word, meant(word, names), strings.Join(names, ", "))
			continue
		}
		s.Reasons = append(s.Reasons, r)
	}
	switch {
	case len(s.Stages) == 0 && len(q.Reasons) > 0:
		s.Stages = []int{abi.CaptureDrop} // nothing else has a reason
	case len(s.Stages) == 0:
		s.Stages = []int{abi.CaptureAdmit, abi.CaptureDeliver, abi.CaptureDrop}
	case len(q.Reasons) > 0 && !slices.Contains(s.Stages, abi.CaptureDrop):
		fault("only what is dropped has a reason: add --stage drop, or leave out --stage")
	}
}

// meant suggests a name for one that is unknown.
func meant(word string, known []string) string {
	if near := spec.Nearest(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}
