package rpc

import (
	"context"
	"fmt"
	"slices"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/addresses"
	"heddle/internal/controller/capability"
	"heddle/internal/controller/definition"
	"heddle/internal/controller/fanout"
	"heddle/internal/controller/history"
	"heddle/internal/controller/inventory"
	"heddle/internal/controller/pipeline"
	"heddle/internal/controller/rollout/staged"
	"heddle/internal/platform/access"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
)

// changeParts are the parts of one change of the definition. Their order is that of what they do in each stage.
func (p people) changeParts() []pipeline.Part {
	there := &hostReports{everywhere: p.everywhere(), fleet: p.fleet}
	ends, stages, closed := staged.Parts(p.inStages())
	judge, work := p.fleet.capabilities.changeParts(capability.World{
		Reported: func() *fanout.Answers { return there.said }})
	return slices.Concat([]pipeline.Part{
		importGate{p.backups.Settled},
		editRights{},
		knownKinds{p.Roster},
		there,
		ends,
		groupUsers{p.fleet.unused, there},
	}, judge, []pipeline.Part{
		hostAddresses{addressing{p.fleet}.granted},
		hostEffects{p.fleet, foreseer(p), there},
		&agreed{fleet: p.fleet, hub: p.fleet.together, roster: p.Roster, log: p.Log, there: there},
		stages,
		closed,
		&changeRecord{Recorder: p.recorder()},
	}, work, []pipeline.Part{importMarks{}})
}

// storedDefinition is the definition in the store.
type storedDefinition struct{ definition.Writer }

// Write implements pipeline.Definition.
func (d storedDefinition) Write(ctx context.Context, p *pipeline.Plan, more func() ([]store.Change, error)) (int64,
	error) {
	d.Ids, d.Ports = p.IDs, p.Ports
	return d.Writer.Write(ctx, p.GetFile(), p.Base, p.Objects(), p.Versions, more)
}

// importGate refuses a change while a backup is imported.
type importGate struct{ settled func(context.Context) error }

// Open implements pipeline.Opener.
func (g importGate) Open(ctx context.Context, p *pipeline.Plan) error {
	if p.Imports || p.GetDryRun() {
		return nil
	}
	return g.settled(ctx)
}

// importMarks writes with the definition what ends an import.
type importMarks struct{}

// Changes implements pipeline.Contributor.
func (importMarks) Changes(p *pipeline.Plan) ([]store.Change, error) { return p.With, nil }

// editRights refuses what the caller may not change, and leaves what they do not see.
type editRights struct{}

// Judge implements pipeline.Judge.
func (editRights) Judge(ctx context.Context, p *pipeline.Plan) (err error) {
	p.Next, err = judged(ctx, p.ApplyDefinitionRequest, p.Have, p.Next)
	return err
}

// knownKinds refuses objects that not all controllers know.
type knownKinds struct{ *peers.Roster }

// Judge implements pipeline.Judge.
func (k knownKinds) Judge(_ context.Context, p *pipeline.Plan) error {
	return k.AllKnow(inventory.KindsIn(p.Next))
}

// hostReports is what hosts report, wherever they are connected, for the parts that weigh the change.
type hostReports struct {
	everywhere *everywhere
	fleet      *fleet
	said       *fanout.Answers
}

// Weigh implements pipeline.Weigher.
func (r *hostReports) Weigh(ctx context.Context, _ *pipeline.Plan) error {
	r.said = r.everywhere.askHosts(ctx, &controllerv1.GetHostsHereRequest{Reports: true})
	r.fleet.hear(r.said)
	return nil
}

// groupUsers refuses a change that removes a port group in use.
type groupUsers struct {
	unused func(slice.Change, *fanout.Answers) error
	there  *hostReports
}

// Weigh implements pipeline.Weigher.
func (u groupUsers) Weigh(_ context.Context, p *pipeline.Plan) error {
	if p.GetForce() {
		return nil
	}
	return u.unused(p.Change, u.there.said)
}

// hostAddresses grants hosts the addresses that their ports need.
type hostAddresses struct {
	granted func(after *inventory.Inventory, more map[string][]inventory.Granted) (*addresses.Grant, error)
}

// Weigh implements pipeline.Weigher.
func (a hostAddresses) Weigh(_ context.Context, p *pipeline.Plan) (err error) {
	p.Granted, err = a.granted(p.After, p.Addresses)
	return err
}

// Prepare implements pipeline.Preparer.
func (hostAddresses) Prepare(_ context.Context, p *pipeline.Plan) (err error) {
	p.GrantedObjects, err = p.Granted.Objects(p.Versions)
	return err
}

// Changes implements pipeline.Contributor.
func (hostAddresses) Changes(p *pipeline.Plan) ([]store.Change, error) { return p.Granted.Lock() }

// hostEffects says what the change means for hosts.
type hostEffects struct {
	fleet *fleet
	ask   foreseer
	there *hostReports
}

// Weigh implements pipeline.Weigher.
func (e hostEffects) Weigh(_ context.Context, p *pipeline.Plan) (err error) {
	if p.Answer.Hosts, err = e.fleet.concerned(p.After, p.Granted); err != nil {
		return err
	}
	return e.fleet.foresee(e.there.said, p.Have, p.Change, p.After, p.Granted, p.ApplyDefinitionRequest, p.Answer)
}

// Foretell implements pipeline.Foreteller.
func (e hostEffects) Foretell(ctx context.Context, p *pipeline.Plan) error {
	p.Answer.Foreseen = e.ask.everywhere(ctx, p.ApplyDefinitionRequest, p.After, p.Granted, p.Answer.GetHosts())
	return nil
}

// changeRecord keeps the change in the definition's history.
type changeRecord struct {
	definition.Recorder
	entry   history.Entry
	changes []store.Change
}

// Prepare implements pipeline.Preparer.
func (r *changeRecord) Prepare(ctx context.Context, p *pipeline.Plan) (err error) {
	r.changes, r.entry, err = r.Record(ctx, entryOf(ctx, p), p.Have, p.Change)
	return rpcerrors.OfStore(err)
}

// Changes implements pipeline.Contributor.
func (r *changeRecord) Changes(*pipeline.Plan) ([]store.Change, error) { return r.changes, nil }

// Tell implements pipeline.Teller.
func (r *changeRecord) Tell(ctx context.Context, p *pipeline.Plan) {
	r.Prune(ctx, r.entry)
	access.Note(ctx, append(p.Answer.GetChanges(), fmt.Sprintf("revision %d", p.Answer.GetRevision()))...)
	r.Log.Info("the definition was changed", "file", p.GetFile(), "revision", p.Answer.GetRevision(), "changes",
		p.Answer.GetChanges())
}
