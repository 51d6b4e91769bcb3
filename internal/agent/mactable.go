package agent

import (
	"fmt"

	"heddle/internal/plan"
	"heddle/internal/spec"
)

// macTableWarnings returns where the host's table of learned MACs is smaller than what the configuration asks for. p is
// the plan with the ports connected by command; nil if only the file's ports are known.
func (ps *ports) macTableWarnings(cfg *spec.Config, p *plan.Plan) []string {
	var lines []string
	has := ps.kernel.MACTable()
	if want := cfg.Host.ActualMACTable(); want != has {
		lines = append(lines, fmt.Sprintf("host.macTable: %d takes effect when the agent is restarted, which loses "+
			"no frame (systemctl restart heddle); the table holds %d now", want, has))
	}
	if p == nil {
		var err error
		if p, err = plan.ResolveValid(cfg, nil); err != nil {
			return lines // the configuration's own faults are reported elsewhere
		}
		p.SetMACTable(has)
	}
	if p.MACLimits() <= cfg.Host.ActualMACTable() {
		return lines // the table will be large enough
	}
	return append(lines, p.Warnings()...)
}
