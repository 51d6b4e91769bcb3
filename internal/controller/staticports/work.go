package staticports

import (
	"context"
	"errors"
	"fmt"

	"heddle/internal/controller/definition"
	"heddle/internal/controller/inventory"
	"heddle/internal/controller/pipeline"
	"heddle/internal/platform/access"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
)

// Controller is what static ports need of the controller that makes a change.
type Controller struct {
	// Keeper does the work that follows a change.
	Keeper definition.PortKeeper
	// CatchUp returns when this controller has all that was written before.
	CatchUp func(context.Context) error
	// Counts are the static ports that there are, by port group.
	Counts func() map[string]Count
	// Served refuses a definition by which a host may not serve a port group any more whose ports it has.
	Served func(after *inventory.Inventory) error
}

// Parts are the parts of a change: Sizes judges it, Work does what follows.
func Parts(with Controller) (Sizes, Work) { return Sizes{with}, Work{with.Keeper} }

// Sizes makes the numbers of static ports what the definition says.
type Sizes struct{ with Controller }

// Open implements pipeline.Opener.
func (s Sizes) Open(ctx context.Context, p *pipeline.Plan) error {
	if p.Imports || p.GetDryRun() {
		return nil
	}
	return Clear(ctx, s.with.Keeper, s.with.CatchUp)
}

// Clear removes ports that an earlier change has left of port groups that are gone, before the next change.
func Clear(ctx context.Context, k definition.PortKeeper, catchUp func(context.Context) error) error {
	if _, left := k.Store.Get(definition.PortWorkKey()); !left {
		return nil
	}
	if err := k.Clear(ctx); err != nil {
		return rpcerrors.OfStore(fmt.Errorf("remove static ports that an earlier change has left: %w", err))
	}
	return rpcerrors.OfStore(catchUp(ctx))
}

// Weigh implements pipeline.Weigher.
func (s Sizes) Weigh(_ context.Context, p *pipeline.Plan) error {
	if !p.GetForce() {
		if err := s.with.Served(p.After); err != nil {
			return err
		}
	}
	sizes := sizesOf(p.After, s.with.Counts())
	p.Ports = sizes.work(p.GetForce())
	err := sizes.check(p.GetForce())
	if !p.Imports || !p.GetDryRun() { // the ports of an import are not there yet
		err = errors.Join(err, settingsFit(p.After, s.with.Keeper.Store.List(store.KindPorts)))
	}
	return err
}

// Satisfied implements pipeline.Satisfied: what is to be done is written alone.
func (s Sizes) Satisfied(ctx context.Context, p *pipeline.Plan) error {
	changes, err := s.with.Keeper.Changes(p.Ports)
	if err != nil || len(changes) == 0 {
		return err
	}
	_, err = s.with.Keeper.Store.Write(ctx, changes)
	return rpcerrors.OfStore(err)
}

// Work does what a change leaves to do for static ports.
type Work struct{ keeper definition.PortKeeper }

// Changes implements pipeline.Contributor.
func (w Work) Changes(p *pipeline.Plan) ([]store.Change, error) { return w.keeper.Changes(p.Ports) }

// Settle implements pipeline.Settler. What fails is a note: the change counts, and controllers try it again.
func (w Work) Settle(ctx context.Context, p *pipeline.Plan) {
	if _, left := w.keeper.Store.Get(definition.PortWorkKey()); !left {
		return
	}
	err := w.keeper.Settle(ctx)
	if err == nil {
		return
	}
	note := fmt.Sprintf("the change counts, as revision %d, and its static ports are not all as it says: %v",
		p.Answer.GetRevision(), err)
	p.Answer.Notes = append(p.Answer.Notes, note)
	access.Note(ctx, note)
	w.keeper.Log.Warn("a change of the definition counts, and static ports are not yet as it says", "err", err)
}
