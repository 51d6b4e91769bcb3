package agent

import (
	"context"
	"maps"
	"slices"
	"time"

	"heddle/internal/agent/definition"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/diagnose"
	"heddle/internal/diagnose/foresee"
	"heddle/internal/diagnose/stats"
	"heddle/internal/diagnose/trace"
	"heddle/internal/model"
	"heddle/internal/plan"
	"heddle/internal/slice"
)

// foreseeTime bounds how long it is computed what a change would newly lose.
const foreseeTime = 5 * time.Second

// foreseer says what a change would newly lose of what ports sent lately.
type foreseer struct {
	*shared
	definition *definition.Part
	ports      *ports
	changer    *changer
	slicing    *slicing
	answers    *answers
	one        chan struct{} // holds a value while it computes: memory for one at a time
}

// of returns what a configuration would newly lose; nil if that can't be found out, which hinders no dry run.
func (fo *foreseer) of(ctx context.Context, next *ahead) *diagnose.Foreseen {
	out, err := fo.compare(ctx, next)
	if err != nil {
		fo.log.Debug("what a change would newly lose is not known", "err", err)
		return nil
	}
	return out
}

// Foresee returns what another version of the controllers' definition would newly lose.
func (fo *foreseer) Foresee(ctx context.Context, q api.Foresee) (*diagnose.Foreseen, error) {
	next, err := fo.version(ctx, q)
	if err != nil {
		return nil, err
	}
	h, err := fo.slicing.read(ctx, next)
	if err != nil {
		return nil, api.NewError(api.Invalid, "the host would refuse the change: "+err.Error())
	}
	var ready *ahead
	err = fo.Do(ctx, func() error {
		// The loop sees the other version until this returns, and nobody else does.
		defer fo.ports.restore(fo.ports.intent())
		fo.definition.Take(h, next)
		n, lines, err := fo.changer.preview(fo.ports.file)
		if len(lines) > 0 {
			return api.NewError(api.Invalid, append([]string{"the host would refuse the change:"}, lines...)...)
		}
		ready = n
		return err
	})
	if err != nil {
		return nil, err
	}
	return fo.compare(ctx, ready)
}

// version makes the version of the slice that is asked about.
func (fo *foreseer) version(ctx context.Context, q api.Foresee) (*state.Slice, error) {
	given, err := fo.slicing.given(ctx)
	if err != nil {
		return nil, err
	}
	set := given.Set()
	if now := set.Hash(); string(now[:]) != string(q.Base) {
		return nil, api.NewError(api.Invalid, "the host has another version of the definition active")
	}
	c := slice.Change{}
	for _, o := range q.Put {
		c.Put = append(c.Put, slice.Object{Key: slice.Key{Kind: slice.Kind(o.Kind), Name: o.Name}, Doc: []byte(o.Doc)})
	}
	for _, o := range q.Removed {
		c.Removed = append(c.Removed, slice.Key{Kind: slice.Kind(o.Kind), Name: o.Name})
	}
	next := set.Clone()
	next.Apply(c)
	if then := next.Hash(); string(then[:]) != string(q.Next) {
		return nil, api.NewError(api.Invalid, "the change does not make the version that it says")
	}
	out := &state.Slice{Objects: slices.Collect(next.All())}
	if given != nil {
		out.Epoch, out.Revision = given.Epoch, given.Revision
	}
	return out, nil
}

// compare looks at what ports sent lately under the plan of now and the one ahead.
func (fo *foreseer) compare(ctx context.Context, next *ahead) (*diagnose.Foreseen, error) {
	ctx, cancel := context.WithTimeout(ctx, foreseeTime)
	defer cancel()
	select {
	case fo.one <- struct{}{}:
		defer func() { <-fo.one }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	seen, err := fo.seen(ctx)
	if err != nil {
		return nil, err
	}
	var now, after *trace.Host
	err = fo.Do(ctx, func() (err error) {
		if now, err = fo.host(); err == nil {
			after = fo.after(now, next)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return foresee.Compare(ctx, now, after, seen), nil
}

// host is what a trace would begin with, without the kernel's program: the model answers alone.
func (fo *foreseer) host() (*trace.Host, error) {
	h, err := fo.answers.traceHost()
	if err != nil {
		return nil, err
	}
	h.Now = hostTime
	learned, err := fo.kernel.MACs()
	if err != nil {
		return nil, err
	}
	for _, m := range learned {
		h.Learned = append(h.Learned, model.MAC{Port: m.Port, MAC: m.MAC,
			Segment: model.Segment{VNI: m.VNI, VLAN: m.VLAN, AD: m.AD},
			Seen:    h.Now - min(h.Now, time.Duration(m.Idle*float64(time.Second)))})
	}
	speakers, err := fo.kernel.Speakers()
	for _, m := range speakers {
		h.Speakers = append(h.Speakers, model.Speaker{Owner: m.Owner, Port: m.Port, MAC: m.MAC})
	}
	return h, err
}

// hostTime is the time on the clock of a host that is only computed with: later than any age of a MAC.
const hostTime = 1000 * time.Hour

// after is that host with the plan ahead.
func (fo *foreseer) after(now *trace.Host, next *ahead) *trace.Host {
	h := *now
	h.Plan, h.Facts = copied(next.plan), fo.facts(now, next.plan)
	h.Groups, h.File = traceGroups(next.cfg), next.file
	return &h
}

// facts are those of the present devices. A device that serves nothing yet counts as one that works: where it is
// missing, the dry run says so.
func (fo *foreseer) facts(now *trace.Host, after *plan.Plan) plan.Facts {
	facts, device := maps.Clone(now.Facts), map[string]plan.Fact{}
	each(now.Plan, func(id plan.PortID, name string) {
		if f, ok := now.Facts[id]; ok {
			device[name] = f
		}
	})
	each(after, func(id plan.PortID, name string) {
		if _, had := fo.Active().Problems[id]; had {
			return
		}
		if _, ok := facts[id]; ok {
			return
		}
		f, ok := device[name]
		if mtu, there := fo.lookup(name); !ok && there {
			f, ok = plan.Fact{Up: true, MTU: mtu}, true
		}
		if ok {
			facts[id] = f
		}
	})
	return facts
}

// each calls f with every port and uplink of a plan that has a device.
func each(p *plan.Plan, f func(id plan.PortID, device string)) {
	for _, sw := range p.Switches {
		for _, u := range sw.Uplinks {
			if u.Device != "" {
				f(u.ID, u.Device)
			}
		}
		for _, port := range sw.Ports {
			if port.Device != "" {
				f(port.ID, port.Device)
			}
		}
	}
}

// seen is what the host knows of what its ports sent lately.
func (fo *foreseer) seen(ctx context.Context) (foresee.Seen, error) {
	list, err := fo.answers.read(ctx, nil)
	if err != nil {
		return foresee.Seen{}, err
	}
	out := foresee.Seen{Ports: map[plan.PortID]foresee.Sent{}, Now: time.Now()}
	if fl := fo.answers.flowing; fl.Meters() {
		flows, err := fl.Flows(ctx, api.FlowQuery{FlowFilter: api.FlowFilter{Direction: "ingress"}, Sort: "packets",
			Limit: foresee.MostSenders})
		if err != nil {
			return out, err
		}
		out.FlowsLeft = flows.Total - len(flows.Flows)
		for _, f := range flows.Flows {
			if !f.Uplink {
				out.Flows = append(out.Flows, foresee.Flow{At: plan.PortID{Switch: f.Switch, Name: f.Port},
					VLAN: f.VLAN, MAC: f.SourceMAC, To: f.DestinationMAC, Src: f.Source, Dst: f.Destination,
					Frames: f.Packets,
					Bytes:  f.FrameBytes, First: f.First, Last: f.Last})
			}
		}
	}
	return out, fo.Do(ctx, func() error {
		for id, total := range received(list) {
			frames, during := fo.answers.dated.recent.Since(id, total, out.Now)
			if frames > 0 {
				out.Ports[id] = foresee.Sent{Frames: frames, During: during}
			}
		}
		return nil
	})
}

// received is how many frames each port has sent so far.
func received(list []api.Stats) map[plan.PortID]uint64 {
	out := make(map[plan.PortID]uint64, len(list))
	for i := range list {
		if s := &list[i]; !s.Uplink {
			out[plan.PortID{Switch: s.Switch, Name: s.Name}] = stats.Of(s).PacketsIn
		}
	}
	return out
}
