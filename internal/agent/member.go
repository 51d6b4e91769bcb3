package agent

import (
	"context"
	"slices"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// member is the agent in its conversation with a controller.
type member struct{ *membership }

// Given is the version of the definition that is active.
func (m member) Given(ctx context.Context) (*state.Slice, error) { return m.slicing.given(ctx) }

// Take activates another version.
func (m member) Take(ctx context.Context, next *state.Slice) ([]string, error) {
	return m.slicing.Take(ctx, next)
}

// Prepare makes another version ready.
func (m member) Prepare(ctx context.Context, id string, next *state.Slice) ([]string, error) {
	return m.slicing.Prepare(ctx, id, next)
}

// Clock is CLOCK_MONOTONIC.
func (m member) Clock() (int64, error) { return dataplane.Monotonic() }

// ActiveAt is when the kernel began to forward by the version that was activated last.
func (m member) ActiveAt(ctx context.Context) (at int64, err error) {
	err = m.Do(ctx, func() error { at = m.slicing.Active().Flip.After; return nil })
	return at, err
}

// kept are warnings about what the host keeps beside the controllers' definition.
func (m *membership) kept(ctx context.Context) (lines []string, err error) {
	err = m.Do(ctx, func() error { lines = m.definition.KeptWarnings(); return nil })
	return lines, err
}

// Report is what the host has of distributed switches of its cluster.
func (m member) Report(ctx context.Context) (*controllerv1.HostReport, error) {
	out := &controllerv1.HostReport{}
	return out, m.Do(ctx, func() error {
		if r := m.definition.Reverted(); r != nil {
			out.Reverted = &controllerv1.RevertedSlice{Why: r.Why, Times: r.Times,
				Version: &controllerv1.SliceVersion{Epoch: r.Epoch, Revision: r.Revision, Hash: r.Hash}}
		}
		cfg := m.definition.Config()
		if cfg == nil {
			return nil
		}
		given := map[string]bool{}
		for _, sw := range cfg.Switches {
			given[sw.Name] = true
		}
		for _, p := range m.answers.view().Ports {
			if given[p.Switch] {
				port := m.reported(p)
				if p.Role == spec.Host {
					port.Role = string(p.Role)
				}
				out.Ports = append(out.Ports, port)
			}
		}
		out.Switches = m.isolation.hostSwitches(given)
		out.Warnings = slices.Concat(spec.MissingDevices(cfg, m.lookup, hostdev.NamedOtherwise),
			texts(m.slicing.ports.misfits), m.definition.Lacks(),
			m.definition.KeptWarnings(), m.slicing.ports.unused)
		return nil
	})
}

// hasNoDevice reports whether a port is pending since no device is its own.
func hasNoDevice(c problem.Code) bool {
	return c == problem.NoDevice || c == problem.DeviceMissing || c == problem.OwnerAwaited
}

// reported is a port as controllers are told of it.
func (m member) reported(p api.Port) *controllerv1.HostPort {
	out := &controllerv1.HostPort{Switch: p.Switch, Name: p.Name, PortGroup: p.PortGroup, State: string(p.State),
		Mac: p.MAC, Device: p.Device, Vm: p.VM, Adapter: p.Adapter, Port: p.PortID, Conflict: p.Conflict,
		Waits: p.Wait != nil, Absent: hasNoDevice(p.ReasonCode),
		Kept: m.definition.IsKept(p.Switch, p.PortGroup)}
	if n := m.state.NICOf(p.Name); n != nil && p.Conflict != "" {
		out.Rival, out.Rivals = n.Rival != "", n.Rivals
	}
	if n := m.state.NICOf(p.Name); n != nil {
		out.Generation = m.moving.GenerationOf(n.VM, n.Adapter)
	}
	if w := m.state.WaitOf(plan.PortID{Switch: p.Switch, Name: p.Name}); w != nil {
		out.Waits, out.Arrived = !w.Awake, w.Awake && !w.Left
	}
	return out
}
