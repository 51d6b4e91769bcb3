package trace

import (
	"net/netip"

	"heddle/internal/abi"
	"heddle/internal/diagnose"
	"heddle/internal/model"
	"heddle/internal/plan"
)

// Explainer explains refusals that were only counted: it returns the causes and remedies of a trace without its frame.
type Explainer struct{ t *tracer }

// NewExplainer uses the plan, the facts, the port groups, the file and the run-time ports of the host.
func NewExplainer(h *Host) *Explainer { return &Explainer{newTracer(h)} }

// Known is what is known about a frame that is not available; zero fields are unknown, and remedies that need them must
// not be requested.
type Known struct {
	Source plan.MAC
	VLAN   uint16
	// Claimed is the source IP address of the frame.
	Claimed netip.Addr
	// Layer3 is the length of its packet in bytes.
	Layer3 int
}

// Explain returns why frames that entered at a port or uplink, or copies for it, were refused; false if there is no
// such port.
func (e *Explainer) Explain(at plan.PortID, why abi.Reason, k Known) (diagnose.Cause, bool) {
	p := e.t.places[at]
	if p == nil {
		return diagnose.Cause{}, false
	}
	return e.subject(p, k).explain(p, why), true
}

func (e *Explainer) subject(p *place, k Known) *subject {
	return &subject{tracer: e.t, from: p, res: &model.Result{}, src: k.Source, vid: k.VLAN, tags: min(int(k.VLAN), 1),
		layer3: k.Layer3, claimed: k.Claimed}
}

// Fix proposes to set fields of a port's policy at the level that the first of them comes from, or at the level that
// affects the fewest ports.
func (e *Explainer) Fix(p *plan.Port, change string, to ...plan.Setting) diagnose.Cause {
	at := e.t.places[p.ID]
	c := diagnose.Cause{Change: change}
	e.subject(at, Known{}).fix(&c, p, settings(p, to...))
	return c
}

// Apply returns the command that applies the configuration file.
func (e *Explainer) Apply() string { return e.t.apply() }

// FixSwitch proposes to change a setting of a switch in the file.
func (e *Explainer) FixSwitch(sw, change, set string) diagnose.Cause {
	c := diagnose.Cause{Change: change}
	s := &subject{tracer: e.t, from: &place{id: plan.PortID{Switch: sw}}}
	s.edit(&c, diagnose.EditSwitch, sw, set)
	return c
}
