package dataplane

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf"

	"heddle/internal/plan"
)

// Sweep removes learned MACs that no look-up would use any more (D5), and returns how many. It visits all buckets of a
// large table, so it does nothing while the table must be empty.
func (k *Kernel) Sweep() (int, error) {
	if err := k.overlays.sweep(); err != nil {
		return 0, err
	}
	if k.bare {
		return 0, nil
	}
	return sweep(k.objects.HeddleSweep)
}

// sweepBehind is the sweep after a change, when no run of the program uses an earlier plan. If no port learns, it
// removes all entries.
func (k *Kernel) sweepBehind(p *plan.Plan) error {
	_, err := sweep(k.objects.HeddleSweep)
	k.bare = err == nil && !learns(p)
	return err
}

// learns reports whether a port learns MACs.
func learns(p *plan.Plan) bool {
	return slices.ContainsFunc(p.Switches, func(sw *plan.Switch) bool {
		return slices.ContainsFunc(sw.Ports, func(port *plan.Port) bool { return port.Policy.Learning.Enabled.V })
	})
}

func sweep(p *ebpf.Program) (int, error) {
	result := make([]byte, 8)
	in := make([]byte, 8)
	_, err := p.Run(&ebpf.RunOptions{Context: in, ContextOut: result})
	if err != nil {
		return 0, fmt.Errorf("sweep learned MACs: %w", err)
	}
	return int(uint32(result[0]) | uint32(result[1])<<8 | uint32(result[2])<<16 | uint32(result[3])<<24), nil
}
