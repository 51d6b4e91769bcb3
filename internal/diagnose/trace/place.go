package trace

import (
	"errors"
	"fmt"
	"strings"

	"heddle/internal/diagnose"
	"heddle/internal/model"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/spec/known"
)

// NotFoundError means that there is no port or uplink of a name.
type NotFoundError struct{ Text string }

func (e *NotFoundError) Error() string { return e.Text }

// KernelError means that the kernel program could not be run.
type KernelError struct{ Err error }

func (e *KernelError) Error() string {
	return "run the kernel program in recording mode: " + e.Err.Error()
}
func (e *KernelError) Unwrap() error { return e.Err }

// place is a port or an uplink; one of the two is set.
type place struct {
	id     plan.PortID
	sw     *plan.Switch
	port   *plan.Port
	uplink *plan.Uplink
	tunnel bool // the uplink is the switch's tunnel
}

func (p *place) device() string {
	if p.port != nil {
		return p.port.Device
	}
	return p.uplink.Device
}

// end is what is behind a port's or uplink's device.
type end int

const (
	vnicEnd   end = iota // a guest's adapter
	hostEnd              // the host itself
	uplinkEnd            // the physical network
)

func (p *place) end() end {
	switch {
	case p.port == nil:
		return uplinkEnd
	case p.port.Role == spec.Host:
		return hostEnd
	}
	return vnicEnd
}

// kind is "port" or "uplink".
func (p *place) kind() string {
	if p.port != nil {
		return "port"
	}
	return "uplink"
}

// tracer answers one request.
type tracer struct {
	*Host
	model  *model.Host
	places map[plan.PortID]*place
	as     map[*place]identity // identities of the ends that were named by an address
	// through is the packet in which frames come from a tunnel.
	through diagnose.Through
}

func newTracer(h *Host) *tracer {
	t := &tracer{Host: h, model: h.NewModel(h.Plan, h.Facts, h.Now), places: placesOf(h.Plan),
		as: map[*place]identity{}}
	t.reach()
	t.model.Restore(h.Learned, h.Sent)
	t.model.RestoreSpent(h.Spent)
	t.model.RestoreAwake(h.Awake)
	t.model.RestoreSpeakers(h.Speakers)
	t.model.Explain(true)
	return t
}

// reach gives the tunnels their second runs, with what live ones know.
func (t *tracer) reach() {
	reach := t.Reach
	if reach == nil {
		reach = map[string]overlay.Reach{}
	}
	t.model.SetReach(reach)
	t.model.SetPlan(t.Plan, t.Facts, t.Now)
	for sw, known := range t.Known {
		if c := t.model.Crossing(sw); c != nil {
			c.Remember(known)
		}
	}
}

// placesOf are the ports and uplinks of a plan.
func placesOf(p *plan.Plan) map[plan.PortID]*place {
	places := map[plan.PortID]*place{}
	for _, sw := range p.Switches {
		for _, u := range sw.Uplinks {
			places[u.ID] = &place{id: u.ID, sw: sw, uplink: u}
		}
		if t := sw.Tunnel; t != nil {
			places[t.ID] = &place{id: t.ID, sw: sw, tunnel: true,
				uplink: &plan.Uplink{ID: t.ID, Number: t.Number, Device: t.Device, VLANs: plan.AllVLANs()}}
		}
		for _, p := range sw.Ports {
			places[p.ID] = &place{id: p.ID, sw: sw, port: p}
		}
	}
	return places
}

// find returns the port or uplink of that name, which may be preceded by its switch.
func (t *tracer) find(name string) (*place, error) {
	if name == "" {
		return nil, errors.New("say where the frame enters: a port or an uplink")
	}
	var uplinks []string
	var found *place
	for _, sw := range t.Plan.Switches {
		if p := t.places[plan.PortID{Switch: sw.Name, Name: name}]; p != nil {
			if p.port != nil {
				return p, nil // a port's name is unique on its host
			}
			found, uplinks = p, append(uplinks, p.id.String())
		}
	}
	switch len(uplinks) {
	case 1:
		return found, nil
	case 0:
		if sw, rest, ok := strings.Cut(name, "/"); ok {
			if p := t.places[plan.PortID{Switch: sw, Name: rest}]; p != nil {
				return p, nil
			}
		}
		return nil, &NotFoundError{t.names().Missing(name)}
	}
	return nil, fmt.Errorf("%d switches have an uplink %q: say %s", len(uplinks), name, strings.Join(uplinks, " or "))
}

// names returns the names of places that frames can come from or go to.
func (t *tracer) names() known.Names {
	n := known.Names{What: "port or uplink", Else: map[string]string{}}
	for _, p := range t.places {
		n.All = append(n.All, p.id.Name)
		n.Else[p.device()] = "the device of " + p.id.Name
	}
	return n
}

// connected returns nil if frames can enter and leave by a port; otherwise the error says why not.
func (t *tracer) connected(p *place) error {
	if _, ok := t.Facts[p.id]; ok {
		return nil
	}
	return fmt.Errorf("%s %s is not connected: %s", p.kind(), p.id.Name, t.WhyWaiting(p.id).Text())
}
