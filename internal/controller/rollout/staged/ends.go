package staged

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/addresses"
	"heddle/internal/controller/inventory"
	"heddle/internal/controller/pipeline"
	"heddle/internal/controller/rollout"
	"heddle/internal/controller/rollout/kept"
	"heddle/internal/platform/access"
	"heddle/internal/platform/store"
)

// Controller is what changes in stages need of the controller that makes them.
type Controller struct {
	// Record is where rollouts are kept, Epoch that of the data.
	Record kept.Record
	Epoch  int64
	// Foretell has the fleet know which rollouts end with a definition that is about to be written, and what some hosts
	// are handed beside it at first; nil for nothing. forget ends that.
	Foretell func(after *inventory.Inventory, ending []string, before *inventory.Inventory) (forget func())
	// Concerned are the hosts that are handed something else by one definition than by another, by name.
	Concerned func(was, after *inventory.Inventory, g *addresses.Grant) map[string]rollout.Member
	// KnowsNone names a controller of the cluster that knows no changes in stages; "" where all do.
	KnowsNone func(context.Context) string
	// CatchUp returns when this controller has all that was written before.
	CatchUp func(context.Context) error
	// Making is the open rollout that the caller sees; nil for none.
	Making func(context.Context) *controllerv1.Rollout
}

// Ends are the open rollouts that a change of the definition ends: the one that it takes back, or those that it
// supersedes.
type Ends struct {
	with Controller
	list []kept.Rollout
	// closing ends them, in the transaction of the change.
	closing []store.Change
	// before is the definition without what ends; nil where the change is not made in stages.
	before *inventory.Inventory
	// forget ends that others know of the change; nil where they don't.
	forget func()
}

// Judge implements pipeline.Judge. Open rollouts that concern the same switches refuse a change that does not supersede
// them.
func (e *Ends) Judge(ctx context.Context, p *pipeline.Plan) error {
	if err := e.find(ctx, p); err != nil {
		return err
	}
	if p.TakesBack == "" {
		p.Answer.Superseded = e.ids()
	}
	if p.GetStages() == nil {
		return nil
	}
	before, err := e.with.Record.Without(e.list, p.Have)
	if err == nil {
		e.before, err = inventory.New(before)
	}
	return err
}

func (e *Ends) find(ctx context.Context, p *pipeline.Plan) error {
	switches := rollout.SwitchesOf(p.Have, p.Next)
	for _, o := range e.with.Record.Store.List(kept.Kind) {
		k, err := kept.Of(o)
		switch {
		case err != nil:
			return err
		case !k.Open() || k.ID != p.TakesBack && !k.Touches(switches):
			continue
		case k.ID == p.TakesBack:
			k.Rollout, err = k.TakeBack(p.TakesBackFor, time.Now().UTC())
		case p.GetSupersede() && p.GetTogether() != nil:
			return connect.NewError(connect.CodeInvalidArgument, "a change that hosts make together supersedes "+
				"no rollout: end it first")
		case p.GetSupersede():
			k.Rollout, err = k.Supersede("a change of "+access.NameOf(ctx), time.Now().UTC())
		default:
			return connect.NewError(connect.CodeFailedPrecondition, openText(&k))
		}
		if err != nil {
			return connect.NewError(connect.CodeFailedPrecondition, err.Error())
		}
		change, err := k.Change()
		if err != nil {
			return err
		}
		e.list, e.closing = append(e.list, k), append(e.closing, change)
	}
	return nil
}

// Found are the rollouts that end, and the definition without them; nil where the change is not made in stages.
func (e *Ends) Found() (list []kept.Rollout, before *inventory.Inventory) { return e.list, e.before }

func (e *Ends) ids() (ids []string) {
	for _, k := range e.list {
		ids = append(ids, k.ID)
	}
	return ids
}

// Weigh implements pipeline.Weigher: from here on the fleet knows what hosts are handed with the change.
func (e *Ends) Weigh(_ context.Context, p *pipeline.Plan) error {
	e.forget = e.with.Foretell(p.After, e.ids(), e.before)
	return nil
}

// Close implements pipeline.Closer.
func (e *Ends) Close() {
	if e.forget != nil {
		e.forget()
	}
}

// Closed writes that rollouts end, with the change or alone.
type Closed struct{ ends *Ends }

// Satisfied implements pipeline.Satisfied.
func (c Closed) Satisfied(ctx context.Context, _ *pipeline.Plan) error {
	if len(c.ends.closing) == 0 {
		return nil
	}
	_, err := c.ends.with.Record.Store.Write(ctx, c.ends.closing)
	return err
}

// Prepare implements pipeline.Preparer.
func (c Closed) Prepare(_ context.Context, p *pipeline.Plan) error {
	for _, k := range c.ends.list {
		word := "supersedes rollout " + k.ID
		if p.TakesBack != "" {
			word = "takes rollout " + k.ID + " back"
		}
		p.Ends = append(p.Ends, word)
	}
	if p.TakesBack != "" && len(c.ends.list) == 1 && c.ends.list[0].Revision == p.Base {
		p.Restores = c.ends.list[0].Base
	}
	return nil
}

// Changes implements pipeline.Contributor.
func (c Closed) Changes(*pipeline.Plan) ([]store.Change, error) { return c.ends.closing, nil }

// openText says why another change is refused.
func openText(k *kept.Rollout) string {
	what := "switch " + strings.Join(k.Switches, ", ")
	if slices.Contains(k.Switches, rollout.All) {
		what = "the hosts"
	}
	return fmt.Sprintf("rollout %s of %s changes %s in stages and is %s (%d of %d stages have begun): wait until it "+
		"has ended (heddle rollout show %s), take it back (heddle rollout abort %s), or replace it by this change "+
		"(--supersede)", k.ID, k.Who, what, k.State, k.Begun, len(k.Order.Stages), k.ID, k.ID)
}
