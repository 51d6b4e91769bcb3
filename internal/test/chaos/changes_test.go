package chaos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"heddle/internal/api"
	"heddle/internal/spec"
	"heddle/internal/test/testkit/realhost"
)

// pause is how long a caller waits who had no answer.
const pause = 50 * time.Millisecond

// callTime bounds a call.
const callTime = 20 * time.Second

// wait waits; false when ctx has ended.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// canonical is a definition's text without what differs from reader to reader.
func canonical(text string) (string, error) {
	d, err := spec.ParseDefinition("definition", []byte(text))
	if err != nil {
		return "", err
	}
	b, err := spec.FormatDefinition(d)
	return string(b), err
}

// reads reads the definition at a controller, and writes that into the history unless it says itself that it may be
// old.
func (r *rig) reads(ctx context.Context, client int, c *realhost.Controller) (DefinitionCall, bool) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	call := Call{Client: client, Begins: r.history.Now(), Outcome: Done}
	d, err := c.Definition(ctx)
	call.Ends = r.history.Now()
	if err != nil || d.Stale != "" {
		if err == nil {
			err = errors.New("stale: " + d.Stale)
		}
		r.failed(fmt.Errorf("read: %w", err))
		return DefinitionCall{}, false
	}
	text, err := canonical(d.Content)
	if err != nil {
		r.t.Error(err)
		return DefinitionCall{}, false
	}
	call.Definition = &DefinitionCall{Revision: d.Revision, Text: text}
	r.history.Add(call)
	return *call.Definition, true
}

// defines changes the definition at a controller again and again: what it has made of it itself, or read there.
func (r *rig) defines(ctx context.Context, client int, c *realhost.Controller) {
	var have DefinitionCall
	for n := 0; ctx.Err() == nil; n++ {
		if have.Revision == 0 {
			var ok bool
			if have, ok = r.reads(ctx, client, c); !ok {
				wait(ctx, pause)
				continue
			}
		}
		text, err := r.another(have.Text, fmt.Sprintf("c%d-%d", client, n))
		if err != nil {
			r.t.Error(err)
			return
		}
		if have = r.define(client, c, have.Revision, text); have.Revision == 0 {
			wait(ctx, time.Duration(r.number(int(pause/2)))) // whoever was first has its turn
		}
	}
}

// define makes a change. It gives what the definition is then, without a revision where that is not known.
func (r *rig) define(client int, c *realhost.Controller, on int64, text string) DefinitionCall {
	// A call that was begun is waited for, also at the end.
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	call := Call{Client: client, Begins: r.history.Now(), Definition: &DefinitionCall{Write: true, On: on, Text: text}}
	out, err := c.Fleet.Define(ctx, api.Define{File: "fleet.yaml", Content: text, Revision: on})
	call.Ends = r.history.Now()
	switch {
	case err == nil:
		call.Outcome, call.Definition.Revision = Done, out.Revision
	case strings.Contains(err.Error(), "the definition has changed since"),
		strings.Contains(err.Error(), "was changed by somebody else"):
		call.Outcome = Refused
	default:
		call.Outcome = Unknown
		r.failed(fmt.Errorf("change: %w", err))
	}
	r.history.Add(call)
	return *call.Definition
}

// another is a definition with a change: the VLAN that left and right have in common, the VLAN, a policy or the labels
// of a port group that nobody uses, and always a label of the marker.
func (r *rig) another(text, mark string) (string, error) {
	d, err := spec.ParseDefinition("definition", []byte(text))
	if err != nil {
		return "", err
	}
	d.Hosts[0].Labels = map[string]string{"change": mark}
	groups := map[string]*spec.PortGroup{}
	for i := range d.Switches[0].PortGroups {
		g := &d.Switches[0].PortGroups[i]
		groups[g.Name] = g
	}
	spare := groups[fmt.Sprintf("spare%d", r.number(3))]
	vlan := 100 + r.number(900)
	switch r.number(4) {
	case 0:
		groups["left"].VLAN.Access, groups["right"].VLAN.Access = vlan, vlan
	case 1:
		spare.VLAN.Access = vlan
	case 2:
		spare.Security.ForgedTransmits = []spec.Answer{spec.Accept, spec.Reject}[r.number(2)]
	default:
		spare.Labels = map[string]string{"rack": []string{"a", "b"}[r.number(2)]}
	}
	b, err := spec.FormatDefinition(d)
	return string(b), err
}

// place is where a host runs VMs that want static ports, one after the other.
type place struct {
	*node
	client int
	device string // and the name of the ports
}

// uuid is that of a VM.
func (p place) uuid(n int) string {
	return fmt.Sprintf("6f9619ff-8b86-d011-b42d-%04x%08x", p.client, n)
}

// claims has VMs that want a static port for a while.
func (r *rig) claims(ctx context.Context, p place) {
	for n := 0; ctx.Err() == nil; n++ {
		vm := p.uuid(n)
		port, certain := r.claim(p, vm)
		if port == "" {
			_ = p.leave(ctx, false)
			if !certain {
				r.abandon(vm)
				wait(ctx, 4*pause)
			}
			wait(ctx, pause)
			continue
		}
		begins, itself := r.history.Now(), p.client%2 == 0
		err := p.leave(ctx, itself)
		if err == nil && itself { // the host has given it up
			r.history.Add(Call{Client: p.client, Begins: begins, Ends: r.history.Now(), Outcome: Done,
				Ports: &PortsCall{Verb: Release, VM: vm}})
			continue
		}
		if err != nil {
			r.failed(fmt.Errorf("disconnect: %w", err))
			_ = p.leave(ctx, false)
		}
		r.release(ctx, release{client: p.client, vm: vm, port: port, begins: begins, again: err != nil})
	}
}

// claim starts a VM, and gives the port that it has got; "" where it has none, or that is not certain.
func (r *rig) claim(p place, vm string) (port string, certain bool) {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	q := api.Connect{VM: vm, Adapter: "net0"}
	q.Name, q.Switch, q.PortGroup, q.Device = p.device, "dvs", "fixed", p.device
	call := Call{Client: p.client, Begins: r.history.Now(), Outcome: Unknown, Ports: &PortsCall{Verb: Claim, VM: vm}}
	_, err := p.Connect(ctx, q)
	call.Ends = r.history.Now()
	switch has := p.portOf(p.device); {
	case err != nil && strings.Contains(err.Error(), "has no free port"):
		call.Outcome, call.Ports.Full = Refused, true
	case err != nil:
		r.failed(fmt.Errorf("claim: %w", err))
	case has.Name != "" && has.VM != vm:
		r.t.Errorf("port %s of VM %s on %s is shown as that of VM %s", p.device, vm, p.name, has.VM)
	case has.PortID != "" && has.Conflict == "":
		call.Outcome, call.Ports.Port, port = Done, has.PortID, has.PortID
	default:
		r.failed(errors.New("claim: " + has.Conflict))
	}
	r.history.Add(call)
	return port, call.Outcome != Unknown
}

// leave stops the VM. Without release it is repeated until an agent has answered: it may have been done before.
func (p place) leave(ctx context.Context, release bool) error {
	for {
		err := p.Disconnect(context.Background(), api.Disconnect{Port: p.device, Release: release})
		var known *api.Error
		if !release && errors.As(err, &known) && known.Kind == api.NotFound {
			return nil
		}
		if err == nil || release || !wait(ctx, pause) {
			return err
		}
	}
}

// release is a port of a VM that does not run, and is to be given up.
type release struct {
	client   int
	vm, port string
	begins   time.Duration
	again    bool // it was tried already, and may have been done
}

// release gives up a port at some controller, until one has answered.
func (r *rig) release(ctx context.Context, q release) {
	call := Call{Client: q.client, Begins: q.begins, Outcome: Unknown,
		Ports: &PortsCall{Verb: Release, VM: q.vm, Free: q.again}}
	for ; ; call.Ports.Free = true {
		one, cancel := context.WithTimeout(context.Background(), callTime)
		_, err := r.controllers[r.number(len(r.controllers))].ReleasePort(one,
			api.ReleaseStatic{Port: q.port, VM: q.vm, Force: true})
		cancel()
		var known *api.Error
		if err == nil || errors.As(err, &known) && known.Kind == api.NotFound { // it has not got it any more
			call.Outcome = Done
			break
		}
		r.failed(fmt.Errorf("release: %w", err))
		if !wait(ctx, pause) {
			break
		}
	}
	call.Ends = r.history.Now()
	r.history.Add(call)
}

// lists lists the static ports at some controller: which VM has which port.
func (r *rig) lists(ctx context.Context, client int) (bound map[string]string, ok bool) {
	return r.listsAt(ctx, client, r.controllers[r.number(len(r.controllers))])
}

func (r *rig) listsAt(ctx context.Context, client int, c *realhost.Controller) (bound map[string]string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	call := Call{Client: client, Begins: r.history.Now(), Outcome: Done}
	list, err := c.StaticPorts(ctx, api.StaticPortQuery{PortGroup: "fixed"})
	call.Ends = r.history.Now()
	if err == nil && list.Stale != "" {
		err = errors.New("stale: " + list.Stale)
	}
	if err != nil {
		r.failed(fmt.Errorf("list: %w", err))
		return nil, false
	}
	bound = map[string]string{}
	for _, p := range list.Ports {
		if p.Bound {
			bound[p.Port] = p.VM
		}
	}
	call.Ports = &PortsCall{Verb: List, Bound: bound}
	r.history.Add(call)
	return bound, true
}

// abandon leaves it to tidies to give up the port of a VM, if it has got one or gets one yet.
func (r *rig) abandon(vm string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.abandoned[vm] = true
}

// tidies looks at the static ports again and again, and gives up those of VMs that do not run and were bound
// nevertheless.
func (r *rig) tidies(ctx context.Context, client int) {
	for wait(ctx, 4*pause) {
		bound, _ := r.lists(ctx, client)
		for port, vm := range bound {
			r.mu.Lock()
			abandoned := r.abandoned[vm]
			r.mu.Unlock()
			if abandoned {
				r.release(ctx, release{client: client, vm: vm, port: port, begins: r.history.Now(), again: true})
			}
		}
	}
}
