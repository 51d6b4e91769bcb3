package plan

import (
	"fmt"
	"slices"

	"heddle/internal/spec"
)

// SetMACTable sets how many learned MACs the host's table can hold, and gives every port with MAC learning its quota of
// it.
//
// If the table can hold all limits together, each port's quota is its limit. Otherwise the table is divided, so that no
// port uses another's quota: a port whose limit is below an equal share keeps its limit, and the others divide the rest
// evenly.
func (p *Plan) SetMACTable(size int) {
	p.MACTable = size
	var learning []*Port
	limits := 0
	for _, sw := range p.Switches {
		for _, port := range sw.Ports {
			port.MACShare = 0
			if l := &port.Policy.Learning; l.Enabled.V && l.Limit.V > 0 {
				learning, limits = append(learning, port), limits+l.Limit.V
			}
		}
	}
	if limits <= size {
		return
	}
	slices.SortStableFunc(learning, func(a, b *Port) int {
		return a.Policy.Learning.Limit.V - b.Policy.Learning.Limit.V
	})
	left := size
	for i, port := range learning {
		share := left / (len(learning) - i)
		if limit := port.Policy.Learning.Limit.V; limit <= share {
			left -= limit
			continue
		}
		port.MACShare = max(share, 1)
		left -= port.MACShare
	}
}

// MACRoom returns how many MACs the port may learn: its limit, or its quota of the host's table if that is smaller.
func (p *Port) MACRoom() int {
	if p.MACShare > 0 {
		return p.MACShare
	}
	return p.Policy.Learning.Limit.V
}

// MACLimits returns the sum of the ports' limits of learned MACs.
func (p *Plan) MACLimits() (sum int) {
	for _, sw := range p.Switches {
		for _, port := range sw.Ports {
			if l := &port.Policy.Learning; l.Enabled.V {
				sum += l.Limit.V
			}
		}
	}
	return sum
}

// Warnings returns, one line each, what a plan requests beyond the capacity of its host.
func (p *Plan) Warnings() []string {
	shared := 0
	for _, sw := range p.Switches {
		for _, port := range sw.Ports {
			if port.MACShare > 0 {
				shared++
			}
		}
	}
	if shared == 0 {
		return nil
	}
	limits := p.MACLimits()
	want := (limits + 4095) / 4096 * 4096
	return []string{fmt.Sprintf("the ports' limits of learned MACs add up to %d, and the host's table holds %d: %d "+
		"ports get a smaller, fair share of it; "+
		"lower the limits, or set host: {macTable: %d}", limits, p.MACTable, shared, min(want, spec.MaxMACTable))}
}
