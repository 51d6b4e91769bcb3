package agent

import (
	"context"
	"errors"
	"strings"

	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/diagnose"
	"heddle/internal/diagnose/trace"
	"heddle/internal/model"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// traceTries is how often a trace is made before model and kernel program are reported as different: the tables are
// copied while frames pass, and a copy may have one table from before a frame and another from after it.
const traceTries = 3

// Trace computes, on copies of the live tables, what would happen to frames. The loop only makes the copies.
func (an *answers) Trace(ctx context.Context, q diagnose.Request) (*diagnose.Report, error) {
	select {
	case an.tracing <- struct{}{}: // one at a time: each takes some 20 MB of kernel memory while it runs
		defer func() { <-an.tracing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	seen, metered := an.flowing.Seen(q.From, q.To)
	var near []trace.Seen
	var r *diagnose.Report
	for range traceTries {
		h, tables, err := an.tables(ctx)
		if err != nil {
			return nil, err
		}
		h.Seen, h.Metered = seen, metered
		if near == nil {
			near = neighbours(h.Plan, q.From, q.To)
		}
		h.Neighbours = near
		if r, err = traceOn(h, tables, q); err != nil {
			return nil, traceError(err)
		}
		if r.Agree || ctx.Err() != nil {
			break
		}
	}
	return r, ctx.Err()
}

// traceError gives an error the kind that says whose fault it is.
func traceError(err error) error {
	var missing *trace.NotFoundError
	var kernel *trace.KernelError
	switch {
	case errors.As(err, &kernel):
		return err
	case errors.As(err, &missing):
		return api.NewError(api.NotFound, missing.Text)
	}
	return api.NewError(api.Invalid, strings.Split(err.Error(), "\n")...)
}

// tables copies, in the loop, what a trace needs.
func (an *answers) tables(ctx context.Context) (h *trace.Host, s *dataplane.Snapshot, err error) {
	err = an.Do(ctx, func() error {
		if h, err = an.traceHost(); err != nil {
			return err
		}
		h.Refused = an.reporter.refused.Claimed()
		s, err = an.kernel.Snapshot()
		return err
	})
	return h, s, err
}

// copied returns a copy of the plan whose ports the loop does not change: the loop still fills in initial MACs.
func copied(p *plan.Plan) *plan.Plan {
	c := &plan.Plan{MACTable: p.MACTable}
	for _, sw := range p.Switches {
		s := *sw
		s.Ports = make([]*plan.Port, len(sw.Ports))
		for i, port := range sw.Ports {
			one := *port
			s.Ports[i] = &one
		}
		c.Switches = append(c.Switches, &s)
	}
	return c
}

// traceGroups returns the port groups with the policies that their ports inherit.
func traceGroups(cfg *spec.Config) (groups []trace.Group) {
	for _, s := range cfg.Switches {
		bare := &spec.Config{Switches: []spec.Switch{s}}
		for _, g := range s.PortGroups {
			bare.Ports = append(bare.Ports, spec.Port{Name: "_" + g.Name, Switch: s.Name, PortGroup: g.Name})
		}
		resolved, err := plan.Resolve(bare, nil)
		if err != nil {
			continue // the answer then lacks this remedy
		}
		for i, g := range s.PortGroups {
			groups = append(groups, trace.Group{Switch: s.Name, Name: g.Name, VNI: g.VNI(),
				Policy: *resolved.Switches[0].Ports[i].Policy, Overrides: g.Overrides})
		}
	}
	return groups
}

// traceOn makes a trace on copies of tables.
func traceOn(h *trace.Host, s *dataplane.Snapshot, q diagnose.Request) (r *diagnose.Report, err error) {
	h.Now = s.Now
	for _, m := range s.Learned {
		h.Learned = append(h.Learned, model.MAC{Port: m.Port, MAC: m.MAC, Seen: m.Seen,
			Segment: model.Segment{VNI: m.VNI, VLAN: m.VLAN, AD: m.AD}})
	}
	for _, m := range s.Sent {
		h.Sent = append(h.Sent, model.Sent{Switch: m.Switch, Segment: model.Segment{VNI: m.VNI, VLAN: m.VLAN, AD: m.AD},
			MAC: m.MAC, At: m.At})
	}
	for _, m := range s.Spent {
		h.Spent = append(h.Spent, model.Spent(m))
	}
	h.Awake = s.Awake
	for _, m := range s.Speakers {
		h.Speakers = append(h.Speakers, model.Speaker{Owner: m.Owner, Port: m.Port, MAC: m.MAC})
	}
	run, err := s.DryRun()
	if err != nil {
		return nil, &trace.KernelError{Err: err}
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	h.Kernel = dryKernel{run}
	var lost error
	h.Known = tunnelsKnow(h, s, &lost)
	defer func() {
		if err == nil && lost != nil {
			r, err = nil, &trace.KernelError{Err: lost}
		}
	}()
	return trace.Run(h, q)
}

// tunnelsKnow is what the live tunnels know of the stations of their segments; what can't be found out is joined to
// lost.
func tunnelsKnow(h *trace.Host, s *dataplane.Snapshot, lost *error) map[string]model.Known {
	all := map[string]model.Known{}
	for _, sw := range h.Plan.Switches {
		if sw.Tunnel == nil {
			continue
		}
		all[sw.Name] = model.Known{
			Bound: func(a overlay.Address) (*model.Heard, *model.Told) {
				heard, told, err := s.Bound(sw.Name, a)
				*lost = errors.Join(*lost, err)
				return heardOf(heard), (*model.Told)(told)
			},
			Placed: func(who model.Station) ([]overlay.Location, *model.Shown) {
				said, shown, err := s.Located(sw.Name, who.VNI, who.VLAN, who.MAC)
				*lost = errors.Join(*lost, err)
				return said, (*model.Shown)(shown)
			},
		}
	}
	return all
}

func heardOf(h *dataplane.HeardAt) *model.Heard {
	if h == nil {
		return nil
	}
	return &model.Heard{MAC: h.MAC, Here: h.Here, Advertised: h.Advertised, Router: h.Router, Seen: h.Seen,
		Rival: h.Rival, Changed: h.Changed, Contested: h.Contested, Turns: h.Turns,
		Unannounced: h.Unannounced,
		Doubt: model.Doubt{Unverified: h.Unverified, Questioned: h.Questioned, Unheard: h.Unheard, Probed: h.Probed,
			Asked: h.Asked}}
}

// dryKernel converts the records of a dry run into the form that a trace compares.
type dryKernel struct{ run *dataplane.DryRun }

func (k dryKernel) Frame(at plan.PortID, frame []byte) (trace.Outcome, error) {
	return outcomeOf(k.run.Frame(at, frame))
}

func (k dryKernel) FrameFrom(sw string, vni uint32, frame []byte) (trace.Outcome, error) {
	return outcomeOf(k.run.FrameFrom(sw, vni, frame))
}

func outcomeOf(r *dataplane.Recorded, err error) (trace.Outcome, error) {
	if err != nil {
		return trace.Outcome{}, err
	}
	o := trace.Outcome{Delivered: r.Delivered, Reason: r.Reason}
	for _, c := range r.Copies {
		o.Copies = append(o.Copies, model.Copy{To: c.To, HostStack: c.HostStack, Frame: c.Frame})
	}
	for _, x := range r.Refused {
		o.Refused = append(o.Refused, model.Refusal{Port: x.To, Reason: x.Reason})
	}
	return o, nil
}
