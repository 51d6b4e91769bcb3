package fleet

import (
	"context"
	"errors"
	"fmt"

	"heddle/internal/controller/capability"
	"heddle/internal/controller/definition"
	"heddle/internal/controller/pipeline"
	"heddle/internal/platform/access"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
)

// Sizes makes the numbers of static ports what the definition says.
type Sizes struct {
	*Ports
	world capability.World
}

// Open implements pipeline.Opener.
func (s Sizes) Open(ctx context.Context, p *pipeline.Plan) error {
	if p.Imports || p.GetDryRun() {
		return nil
	}
	return rpcerrors.OfStore(s.keeper().ClearLeft(ctx, s.CatchUp))
}

// Weigh implements pipeline.Weigher.
func (s Sizes) Weigh(_ context.Context, p *pipeline.Plan) error {
	if !p.GetForce() {
		if err := s.served(p.After, s.world.Reported()); err != nil {
			return err
		}
	}
	sizes := sizesOf(p.After, s.bindings.Counts())
	p.Ports = sizes.work(p.GetForce())
	err := sizes.check(p.GetForce())
	if !p.Imports || !p.GetDryRun() { // the ports of an import are not there yet
		err = errors.Join(err, settingsFit(p.After, s.Store.List(store.KindPorts)))
	}
	return err
}

// Satisfied implements pipeline.Satisfied: what is to be done is written alone.
func (s Sizes) Satisfied(ctx context.Context, p *pipeline.Plan) error {
	changes, err := s.keeper().Changes(p.Ports)
	if err != nil || len(changes) == 0 {
		return err
	}
	_, err = s.Store.Write(ctx, changes)
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
