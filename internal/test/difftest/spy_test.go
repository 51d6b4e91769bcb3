package difftest

import (
	"slices"
	"time"

	"heddle/internal/abi"
	"heddle/internal/model"
	"heddle/internal/plan"
)

func newModel(p *plan.Plan, f plan.Facts, now time.Duration) *model.Host { return model.New(p, f, now) }

// spy counts what happens to the frames of a subject.
type spy struct {
	Subject
	seen map[string]int
}

func (s *spy) Frame(at plan.PortID, frame []byte, now time.Duration) (Outcome, error) {
	o, err := s.Subject.Frame(at, frame, now)
	s.note(at, o, "")
	return o, err
}

func (s *spy) FromHost(at plan.PortID, frame []byte, now time.Duration) (Outcome, error) {
	o, err := s.Subject.FromHost(at, frame, now)
	s.note(at, o, "from host: ")
	return o, err
}

// note counts an outcome, what is told apart by the prefix.
func (s *spy) note(from plan.PortID, o Outcome, prefix string) {
	if s.seen[prefix+"frames"]++; prefix != "" {
		leaves := slices.ContainsFunc(o.Copies, func(c model.Copy) bool { return c.To.Name[0] == 'u' })
		switch {
		case len(o.Copies) == 0:
			s.seen[prefix+"dropped"]++
		case !leaves:
			s.seen[prefix+"kept"]++
		case len(o.Copies) > 1:
			s.seen[prefix+"copied"]++
		}
		return
	}
	if o.Delivered {
		s.seen["delivered"]++
	} else {
		s.seen["dropped "+o.Reason.String()]++
	}
	for _, r := range o.Refused {
		s.seen["refused "+r.Reason.String()]++
	}
	for _, c := range o.Copies {
		if c.HostStack && from.Name[0] != 'u' {
			s.seen["to host by an uplink"]++
		}
		switch _, tagged := outerDomain(c.Frame); {
		case c.HostStack:
			s.seen["host"]++
		case c.To.Name[0] == 'u':
			s.seen["copy to an uplink"]++
		case tagged:
			s.seen["copy with a tag"]++
		}
	}
}

func (s *spy) MACs(now time.Duration) ([]model.MAC, error) {
	list, err := s.Subject.MACs(now)
	s.seen["learned"] += len(list)
	return list, err
}

// everyReason lists the reasons that frames can meet in the switch itself: device-refused is the kernel's alone, and
// those of a tunnel are its own programs', which TestS84_S105_AnOverlaySegmentOverARoutedNetwork and
// TestS85_TheModelAndTheKernelAgreeOnNeighbours have frames meet.
func everyReason() (names []string) {
	for r := range abi.Reasons() {
		switch r {
		case abi.ReasonDeviceRefused, abi.ReasonTunnelUnknownEndpoint, abi.ReasonTunnelUnknownVni,
			abi.ReasonTunnelMTU, abi.ReasonTunnelNoEndpoint, abi.ReasonNeighbourAnswered, abi.ReasonNeighbourHere,
			abi.ReasonNeighbourLimit:
		default:
			names = append(names, r.String())
		}
	}
	return names
}
