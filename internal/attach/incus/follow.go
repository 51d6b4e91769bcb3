package incus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"heddle/internal/api"
)

// Agent is what a follower needs of an agent.
type Agent interface {
	State(context.Context) (*api.State, error)
	Reconnect(context.Context, api.Connect) (*api.Applied, error)
	ConnectIncoming(context.Context, api.Incoming) (*api.Applied, error)
	Disconnect(context.Context, api.Disconnect) error
}

// Follower makes an agent's ports those of Incus's instances.
type Follower struct {
	Agent     Agent
	Instances func(context.Context) ([]Instance, error)
	Host      Host
	// Warn writes one line for the operator.
	Warn func(format string, args ...any)

	// mine are the ports that were connected, or found as they are wanted: the UUIDs of their instances by the ports'
	// names.
	mine map[string]string
	// warned are lines that hold still, so that each is written once.
	warned map[string]bool
}

// Host is what a follower needs of its host.
type Host interface {
	// Has reports whether a device exists.
	Has(device string) bool
	// Release takes a device out of its bridge.
	Release(device string) error
	// QEMU finds the QEMU of the VM with a UUID, and whether it waits for a guest that arrives by migration.
	QEMU(uuid string) (runs, incoming bool)
}

// The times of a follower.
const (
	// soon is when to look again after a fault, or for what is about to be there.
	soon = 50 * time.Millisecond
	// later is the longest time between two looks after a fault; it doubles up to there.
	later = 5 * time.Second
	// regularly is how often to look where nothing was heard of: an instance's configuration may have changed.
	regularly = 10 * time.Second
	// askFor is how long Incus and the agent may take for one look.
	askFor = 30 * time.Second
)

// Run looks now and after each change of the host's devices, until ctx ends.
func (f *Follower) Run(ctx context.Context, changed <-chan struct{}) {
	delay := soon
	for {
		again := time.After(regularly)
		asking, cancel := context.WithTimeout(ctx, askFor)
		whole, err := f.Sync(asking)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if whole && err == nil {
			delay = soon
		} else {
			again, delay = time.After(delay), min(2*delay, later)
		}
		select {
		case <-ctx.Done():
			return
		case <-again:
		case _, open := <-changed:
			if !open {
				return
			}
			delay = soon
		}
	}
}

// Sync connects what Incus's instances want and is not connected, and disconnects what it connected before and whose
// device is gone, or whose instance wants it no more. whole is false where a VM's QEMU does not run yet.
func (f *Follower) Sync(ctx context.Context) (whole bool, err error) {
	told := map[string]bool{}
	defer func() { f.warned = told }()
	warn := func(err error) {
		told[err.Error()] = true
		if !f.warned[err.Error()] {
			f.Warn("%v", err)
		}
	}
	instances, err := f.Instances(ctx)
	if err != nil {
		warn(err)
		return false, err
	}
	s, err := f.Agent.State(ctx)
	if err != nil {
		warn(err)
		return false, err
	}
	whole = true
	var faults []error
	if err := f.drop(ctx, s.Ports); err != nil {
		warn(err)
		faults = append(faults, err)
	}
	for _, i := range instances {
		wants, err := i.Wants()
		if err != nil {
			warn(err) // repeating does not help: it is in Incus's configuration
		} else if err := f.takenOut(ctx, i, s.Ports); err != nil {
			warn(err)
			faults = append(faults, err)
		}
		for _, w := range wants {
			if !f.Host.Has(w.Device) {
				continue
			}
			there, err := f.connect(ctx, i, w, s.Ports)
			if err != nil {
				err = fmt.Errorf("instance %s: adapter at %s: %w", i.Name, w.Device, err)
				warn(err)
				faults = append(faults, err)
			}
			whole = whole && there
		}
	}
	return whole, errors.Join(faults...)
}

// connect connects a port, unless it is. done is false while the VM's QEMU does not run: only it says whether the guest
// starts here or arrives by migration.
func (f *Follower) connect(ctx context.Context, i Instance, w api.Incoming, ports []api.Port) (done bool, err error) {
	if f.mine == nil {
		f.mine = map[string]string{}
	}
	if connected(ports, w) {
		f.mine[w.Name] = w.VM
		return true, nil
	}
	arrives := false
	if i.VM() && w.VM != "" {
		runs, incoming := f.Host.QEMU(w.VM)
		if !runs {
			return false, nil
		}
		arrives = incoming
	}
	if err := f.Host.Release(w.Device); err != nil {
		return false, err
	}
	if arrives {
		err = f.arrives(ctx, i, w)
	} else {
		_, err = f.Agent.Reconnect(ctx, w.Connect)
	}
	if err != nil {
		return false, err
	}
	f.mine[w.Name] = w.VM
	return true, nil
}

// arrives connects the port of a VM that arrives. Incus does not ask whether the host can serve it: what the host lacks
// is said, and the VM has its port even so.
func (f *Follower) arrives(ctx context.Context, i Instance, w api.Incoming) error {
	_, refused := f.Agent.ConnectIncoming(ctx, w)
	var answer *api.Error
	if refused == nil || !errors.As(refused, &answer) || answer.Kind != api.Invalid {
		return refused
	}
	w.Force = true
	if _, err := f.Agent.ConnectIncoming(ctx, w); err != nil {
		return err
	}
	f.Warn("instance %s arrives, and this host can't serve it as well as the one that it leaves; its port is "+
		"connected even so: %s", i.Name, refused)
	return nil
}

// isMine reports whether a port is one that was connected here: another guest may have one of that name by now.
func (f *Follower) isMine(p api.Port) bool {
	vm, mine := f.mine[p.Name]
	return mine && vm == p.VM && p.Origin == api.FromRun
}

// drop disconnects the ports that were connected here and whose device is gone.
func (f *Follower) drop(ctx context.Context, ports []api.Port) error {
	var faults []error
	for _, p := range ports {
		if f.isMine(p) && p.Device != "" && !f.Host.Has(p.Device) {
			faults = append(faults, f.disconnect(ctx, p))
		}
	}
	for name := range f.mine {
		if !slices.ContainsFunc(ports, func(p api.Port) bool { return p.Name == name }) {
			delete(f.mine, name)
		}
	}
	return errors.Join(faults...)
}

// takenOut disconnects the ports of an instance's adapters that its configuration names no more. They are known also
// where another process has connected them: by the instance's UUID, and by an owner of this kind.
func (f *Follower) takenOut(ctx context.Context, i Instance, ports []api.Port) error {
	var faults []error
	for _, p := range ports {
		own := p.VM != "" && p.VM == i.UUID() && p.Origin == api.FromRun && p.Owner == ownerBegin+i.owner()
		if !own && !(f.isMine(p) && strings.HasPrefix(p.Name, i.owner()+"/")) || p.Wait != nil {
			continue
		}
		if !i.names(strings.TrimPrefix(p.Name, i.owner()+"/")) {
			faults = append(faults, f.disconnect(ctx, p))
		}
	}
	return errors.Join(faults...)
}

// disconnect ends a port unless it is gone, or another guest's by now.
func (f *Follower) disconnect(ctx context.Context, p api.Port) error {
	err := f.Agent.Disconnect(ctx, api.Disconnect{Port: p.Name, VM: p.VM})
	var answer *api.Error
	if err != nil && !(errors.As(err, &answer) && answer.Kind == api.NotFound) {
		return fmt.Errorf("port %s: %w", p.Name, err)
	}
	return nil
}
