package captures

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// maxVLAN is the highest VLAN ID.
const maxVLAN = 4094

// selectSegments adds the segments of a request; it returns those that the switch does not have.
func selectSegments(s *dataplane.Selection, switches []*plan.Switch, words []string,
	fault func(string, ...any)) (missing []string) {
	if len(words) == 0 {
		return nil
	}
	sw := switchOf(s.Ports, switches, words, fault)
	if sw == nil {
		if len(switches) > 0 && onlyVNIs(words) && !slices.ContainsFunc(switches, hasTunnel) {
			missing = append(missing, noTunnel("")+", so that no frame has a VNI")
		}
		return missing
	}
	s.Switch = sw.Name
	for _, w := range words {
		list, ok := parseSegments(w)
		switch {
		case !ok && strings.HasPrefix(w, vniPrefix):
			fault("%s", badVNI(w))
		case !ok:
			fault("VLAN %q: it is a number such as 10, a range such as 10-20, \"untagged\", or of 802.1ad ad:10", w)
		case list[0].VNI == 0:
		case sw.Tunnel == nil:
			missing = append(missing, noTunnel(sw.Name)+", so that none of its frames has a VNI")
		default:
			missing = append(missing, inNoVNI(sw, list[0].VNI)...)
		}
		s.Segments = append(s.Segments, list...)
	}
	return missing
}

// badVNI says what a word for a VNI must be.
func badVNI(word string) string {
	return fmt.Sprintf("VNI %q: it is a number from %d to %d, with a VLAN inside if you want: 5000, 5000/10, "+
		"5000/10-20, 5000/untagged", strings.TrimPrefix(word, vniPrefix), spec.MinVNI, spec.MaxVNI)
}

// inNoVNI says that a switch has no port in a VNI; nothing if it has one.
func inNoVNI(sw *plan.Switch, vni uint32) []string {
	if slices.Contains(sw.VNIs(), vni) {
		return nil
	}
	return []string{fmt.Sprintf("switch %s has no port in VNI %d; %s", sw.Name, vni, inVNIs(sw))}
}

// inVNIs says in which VNIs a switch has ports.
func inVNIs(sw *plan.Switch) string {
	var all []string
	for _, vni := range sw.VNIs() {
		all = append(all, strconv.Itoa(int(vni)))
	}
	if len(all) == 0 {
		return "it has none in any"
	}
	return "it has some in " + strings.Join(all, ", ")
}

// switchOf finds the switch of which segments are meant: that of the ports, the only one, or for VNIs the only one with
// a tunnel. It returns nil after a fault.
func switchOf(ports []plan.PortID, switches []*plan.Switch, words []string, fault func(string, ...any)) *plan.Switch {
	if len(ports) > 0 {
		if slices.ContainsFunc(ports, func(id plan.PortID) bool { return id.Switch != ports[0].Switch }) {
			fault("VLANs and VNIs are those of one switch, and the ports are of several: capture them one switch at " +
				"a time")
			return nil
		}
		return switches[slices.IndexFunc(switches, func(sw *plan.Switch) bool { return sw.Name == ports[0].Switch })]
	}
	if onlyVNIs(words) && len(switches) > 1 {
		switches = slices.DeleteFunc(slices.Clone(switches), func(sw *plan.Switch) bool { return !hasTunnel(sw) })
	}
	switch len(switches) {
	case 0: // it is the switch that does not exist, or none has a tunnel
		return nil
	case 1:
		return switches[0]
	}
	fault("VLANs and VNIs are those of one switch, and there are %d: say which with --switch", len(switches))
	return nil
}

func onlyVNIs(words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.HasPrefix(w, vniPrefix) })
}

func hasTunnel(sw *plan.Switch) bool { return sw.Tunnel != nil }

// vniPrefix begins the word for an overlay segment; "--vni 5000" is "vni:5000".
const vniPrefix = api.VNIPrefix

func parseSegments(word string) ([]dataplane.Segment, bool) {
	if rest, ok := strings.CutPrefix(word, vniPrefix); ok {
		number, inside, one := strings.Cut(rest, "/")
		vni, err := strconv.ParseUint(number, 10, 32)
		if err != nil || vni < spec.MinVNI || vni > spec.MaxVNI {
			return nil, false
		}
		if !one {
			return []dataplane.Segment{{VNI: uint32(vni), All: true}}, true
		}
		list, ok := parseSegments(inside)
		for i := range list {
			ok = ok && !list[i].AD && list[i].VNI == 0
			list[i].VNI = uint32(vni)
		}
		return list, ok
	}
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
