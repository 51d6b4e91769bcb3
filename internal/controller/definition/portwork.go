package definition

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"heddle/internal/controller/inventory"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
	"heddle/internal/spec"
)

// A change of the definition may end the static ports of port groups, or say another number of them. Ports are many
// objects, so they follow the change in transactions of their own, after it counts: a change that fails costs no port.
// What is to be done is an object that is written in the transaction of the change, and removed when it is done. Each
// controller that finds it goes on with it.

// portWorkKind is the kind of that object.
const portWorkKind store.Kind = "portWork"

// PortWorkKey is its key: there is one at a time, to which the next change adds.
func PortWorkKey() store.Key { return store.Key{Kind: portWorkKind, Name: "current"} }

// portWorkDoc says what is to be done.
type portWorkDoc struct {
	// Resize: port groups may have another number of ports than the definition says.
	Resize bool `json:"resize,omitempty"`
	// Ending are the port groups that have no static ports any more.
	Ending map[string]endingPorts `json:"ending,omitempty"`
}

// endingPorts is what is known of the ports of one of them.
type endingPorts struct {
	// Forced: bound ports end as well, where the group stays. With a group that is gone they always do.
	Forced bool `json:"forced,omitempty"`
}

// mostEnding is how large that object may be: it is written with the change, in one transaction.
const mostEnding = 256 << 10

// PortStore is what the work on ports needs of the store.
type PortStore interface {
	Store
	Resize(ctx context.Context, group string, ports int, guard *store.Change) error
	RemovePorts(ctx context.Context, group string, force bool, guard *store.Change) error
}

// PortKeeper makes the static ports of port groups what the definition says.
type PortKeeper struct {
	Store PortStore
	Log   *slog.Logger
}

// Ports is what a change means for static ports.
type Ports struct {
	// Resize: some port group gets another number of them.
	Resize bool
	// Ending are the port groups that have none from then on.
	Ending []string
	// Forced: bound ones end as well. Else the change is refused while one is bound.
	Forced bool
}

// Changes are those of the store that are written with the change of the definition: what is left to do, with what was
// left before. None where nothing is.
func (k PortKeeper) Changes(p Ports) ([]store.Change, error) {
	was, doc, err := k.open()
	if err != nil || was.Version == 0 && !p.Resize && len(p.Ending) == 0 {
		return nil, err
	}
	doc.Resize = doc.Resize || p.Resize
	for _, name := range p.Ending {
		doc.Ending[name] = endingPorts{Forced: p.Forced}
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	if len(text) > mostEnding {
		return nil, fmt.Errorf("the static ports of %d port groups would end at once, which are too many for one "+
			"change: make it in several", len(doc.Ending))
	}
	change := store.Change{Key: PortWorkKey(), Doc: text, IfVersion: was.Version}
	if !p.Forced {
		change.Unbound = p.Ending
	}
	return []store.Change{change}, nil
}

// open reads what is left to do.
func (k PortKeeper) open() (store.Object, portWorkDoc, error) {
	doc := portWorkDoc{}
	o, there := k.Store.Get(PortWorkKey())
	if there {
		if err := json.Unmarshal(o.Doc, &doc); err != nil {
			return o, doc, fmt.Errorf("what is left to do for static ports (%s) is damaged: %w", o.Key, err)
		}
	}
	if doc.Ending == nil {
		doc.Ending = map[string]endingPorts{}
	}
	return o, doc, nil
}

// Clear removes ports that are left of port groups that are gone. It comes before the next change of the definition,
// which may define such a group again: nothing is bound in that one.
func (k PortKeeper) Clear(ctx context.Context) error {
	return k.again(ctx, func() error {
		o, doc, err := k.open()
		if err != nil || o.Version == 0 {
			return err
		}
		for name := range doc.Ending {
			if _, there := k.Store.Get(store.Key{Kind: store.KindPortGroup, Name: name}); there {
				continue
			}
			guard := &store.Change{Key: o.Key, IfVersion: o.Version}
			if err := k.Store.RemovePorts(ctx, name, true, guard); err != nil {
				return err
			}
		}
		return nil
	})
}

// ClearLeft is Clear where there is something left. catchUp returns when this controller has all that was written.
func (k PortKeeper) ClearLeft(ctx context.Context, catchUp func(context.Context) error) error {
	if _, left := k.Store.Get(PortWorkKey()); !left {
		return nil
	}
	if err := k.Clear(ctx); err != nil {
		return fmt.Errorf("remove static ports that an earlier change has left: %w", err)
	}
	return catchUp(ctx)
}

// settleAttempts is how often the work is begun again that a change of the definition, or another controller, overtook.
const settleAttempts = 5

// again does something by what the store has now, and again where that was changed meanwhile.
func (k PortKeeper) again(ctx context.Context, do func() error) (err error) {
	for range settleAttempts {
		if err = k.Store.Sync(ctx); err != nil {
			return err
		}
		var conflict *store.Conflict
		if err = do(); !errors.As(err, &conflict) {
			return err
		}
	}
	return err
}

// Settle does all that is left to do. An error names each port group whose ports are not what the definition says.
func (k PortKeeper) Settle(ctx context.Context) error {
	return k.again(ctx, func() error {
		if _, there := k.Store.Get(PortWorkKey()); !there {
			return nil
		}
		if err := (Writer{Store: k.Store, Log: k.Log}).Fold(ctx); err != nil {
			return err
		}
		o, doc, err := k.open()
		if err != nil || o.Version == 0 {
			return err
		}
		jobs, err := k.jobs(&o, doc)
		if err != nil {
			return err
		}
		return k.do(ctx, &o, jobs)
	})
}

// job makes the ports of one port group what the definition says.
type job struct {
	group string
	do    func(context.Context) error
}

// jobs are what there is to do, by the definition. An elastic port group keeps the ports that it has grown.
func (k PortKeeper) jobs(o *store.Object, doc portWorkDoc) (list []job, err error) {
	static, err := k.staticGroups()
	if err != nil {
		return nil, err
	}
	guard := &store.Change{Key: o.Key, IfVersion: o.Version}
	for _, name := range slices.Sorted(maps.Keys(doc.Ending)) {
		if _, again := static[name]; again {
			continue
		}
		_, stays := k.Store.Get(store.Key{Kind: store.KindPortGroup, Name: name})
		force := doc.Ending[name].Forced || !stays
		list = append(list, job{name, func(ctx context.Context) error {
			return k.Store.RemovePorts(ctx, name, force, guard)
		}})
	}
	if !doc.Resize {
		return list, nil
	}
	have := k.counts()
	for _, name := range slices.Sorted(maps.Keys(static)) {
		g := static[name]
		number, _ := g.StaticPorts()
		if n := have[name]; n == number || n > number && g.Binding == spec.Elastic {
			continue
		}
		list = append(list, job{name, func(ctx context.Context) error {
			return k.Store.Resize(ctx, name, number, guard)
		}})
	}
	return list, nil
}

// staticGroups are the port groups with static ports, by the definition.
func (k PortKeeper) staticGroups() (map[string]spec.PortGroup, error) {
	set := &slice.Set{}
	for _, kind := range inventory.Kinds() {
		for _, o := range k.Store.List(store.Kind(kind)) {
			set.Put(slice.Object{Key: slice.Key{Kind: kind, Name: o.Name}, Doc: o.Doc})
		}
	}
	v, err := inventory.New(set)
	if err != nil {
		return nil, err
	}
	return v.StaticGroups(), nil
}

// counts are how many static ports each port group has that has any.
func (k PortKeeper) counts() map[string]int {
	all := map[string]int{}
	for _, o := range k.Store.List(store.KindPorts) {
		if b, err := store.DecodeBindings(&o); err == nil {
			all[b.Group] += b.Ports
		}
	}
	return all
}

// portsAtOnce is how many port groups get their ports at the same time: the store makes one transaction of several.
const portsAtOnce = 64

// do does jobs, and then removes the object that asks for them. What waits for people alone is an error that is not
// tried again: ports that were bound meanwhile.
func (k PortKeeper) do(ctx context.Context, o *store.Object, jobs []job) error {
	failed := make([]error, len(jobs))
	var all errgroup.Group
	all.SetLimit(portsAtOnce)
	for i, j := range jobs {
		all.Go(func() error {
			failed[i] = j.do(ctx)
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	var left, bound []error
	for i, err := range failed {
		var used *store.InUse
		switch name := jobs[i].group; {
		case err == nil:
		case errors.As(err, &used):
			bound = append(bound, fmt.Errorf("port group %s keeps ports that were bound meanwhile; release them "+
				"(heddle port static list, release) and apply the definition again: %w", name, err))
		default:
			left = append(left, fmt.Errorf("port group %s does not have the static ports that the definition says; "+
				"the controllers try it again: %w", name, err))
		}
	}
	if len(left) > 0 {
		return errors.Join(slices.Concat(left, bound)...)
	}
	_, err := k.Store.Write(ctx, []store.Change{{Key: o.Key, Delete: true, IfVersion: o.Version}})
	var conflict *store.Conflict
	switch {
	case errors.As(err, &conflict):
		return err
	case err != nil: // all is done: it is looked at again, and nothing more
		k.Log.Debug("what was to be done for static ports is done, and stays noted", "err", err)
	}
	return errors.Join(bound...)
}

// Follow does what another controller has left undone, until ctx ends: what it saw a while ago already. Several
// controllers may do it at once: each transaction is made only while the object is the one that it rests on.
func (k PortKeeper) Follow(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var seen int64
	said := false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		o, there := k.Store.Get(PortWorkKey())
		if !there || o.Version != seen {
			seen = o.Version
			continue
		}
		err := k.Settle(ctx)
		switch {
		case err == nil:
			said = false
		case !said && ctx.Err() == nil:
			said = true
			k.Log.Warn("static ports are not yet what the definition says", "err", err)
		}
	}
}
