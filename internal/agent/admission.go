package agent

import (
	"context"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/admission"
	"heddle/internal/agent/view"
	"heddle/internal/api"
)

// describe asks a controller what a port has where its guest runs.
type describe func(context.Context, *controllerv1.DescribeArrivalRequest) (*controllerv1.DescribeArrivalResponse, error)

// newAdmission returns what decides whether this host can serve guests that are to arrive.
func newAdmission(s *shared, ps *ports, at *attaching, asks describe,
	flows func(context.Context) (*api.FlowStatus, error)) *admission.Judge {
	return admission.New(admission.Host{Reader: s.Reader, Loop: s.Loop, Log: s.log, Describe: asks, Flows: flows,
		OnlySwitch: ps.onlySwitch, MACTable: func() int { return s.kernel.MACTable() }, MACsHeld: s.heldMACs,
		Source: func() view.Source {
			now := s.Active()
			return view.Source{Plan: now.Plan, Applied: now.Applied, Remembered: s.state, Problems: now.Problems,
				Unattached: at.whyNotAttached}
		}})
}

// heldMACs is how many learned MACs the host holds.
func (s *shared) heldMACs() (held int, err error) {
	all, err := s.kernel.Counters()
	for _, counters := range all {
		held += int(counters.MACsHeld)
	}
	return held, err
}
