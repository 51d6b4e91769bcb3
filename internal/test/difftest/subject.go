package difftest

import (
	"time"

	"heddle/internal/abi"
	"heddle/internal/model"
	"heddle/internal/plan"
)

// Subject is an implementation of a host's switches. Time is the caller's: a duration since a fixed instant, in whole
// milliseconds, never running backwards. An error means that the subject could not do its work, never that a frame was
// dropped.
type Subject interface {
	SetPlan(p *plan.Plan, f plan.Facts, now time.Duration) error
	// Frame gives a frame of at least 14 bytes to a connected port or uplink. The outcome is read before the next call.
	Frame(at plan.PortID, frame []byte, now time.Duration) (Outcome, error)
	// FromHost gives a frame of the host's own, on its way out by a connected uplink.
	FromHost(uplink plan.PortID, frame []byte, now time.Duration) (Outcome, error)
	Sweep(now time.Duration) error
	// MACs lists the learned entries in any order.
	MACs(now time.Duration) ([]model.MAC, error)
	Counters() (map[plan.PortID]model.Counters, error)
	// Flows takes out what was metered since it was last asked.
	Flows() (map[model.Metered]model.MeteredCounts, error)
}

// Outcome is what became of a frame. The order of copies and refusals means nothing.
type Outcome struct {
	Delivered bool
	Reason    abi.Reason
	Copies    []model.Copy
	Refused   []model.Refusal
}

// Model is the model as a subject.
type Model struct {
	host *model.Host
	make func(*plan.Plan, plan.Facts, time.Duration) *model.Host
}

// NewModel makes a subject of the model. make is model.New, or makes a model with a fault.
func NewModel(make func(*plan.Plan, plan.Facts, time.Duration) *model.Host) *Model {
	return &Model{make: make}
}

// SetPlan implements Subject.
func (m *Model) SetPlan(p *plan.Plan, f plan.Facts, now time.Duration) error {
	if m.host == nil {
		m.host = m.make(p, f, now)
	} else {
		m.host.SetPlan(p, f, now)
	}
	return nil
}

// Frame implements Subject.
func (m *Model) Frame(at plan.PortID, frame []byte, now time.Duration) (Outcome, error) {
	r := m.host.Frame(at, frame, now)
	return Outcome{Delivered: r.Delivered, Reason: r.Reason, Copies: r.Copies, Refused: r.Refused}, nil
}

// FromHost implements Subject.
func (m *Model) FromHost(uplink plan.PortID, frame []byte, now time.Duration) (Outcome, error) {
	r := m.host.FromHost(uplink, frame, now)
	return Outcome{Delivered: r.Delivered, Reason: r.Reason, Copies: r.Copies, Refused: r.Refused}, nil
}

// Sweep implements Subject.
func (m *Model) Sweep(now time.Duration) error {
	m.host.Sweep(now)
	return nil
}

// MACs implements Subject.
func (m *Model) MACs(time.Duration) ([]model.MAC, error) { return m.host.MACs(), nil }

// Flows implements Subject.
func (m *Model) Flows() (map[model.Metered]model.MeteredCounts, error) {
	return m.host.TakeFlows(), nil
}

// Counters implements Subject.
func (m *Model) Counters() (map[plan.PortID]model.Counters, error) { return m.host.Counters(), nil }
