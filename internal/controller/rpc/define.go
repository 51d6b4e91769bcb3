package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/definition"
	"heddle/internal/controller/history"
	"heddle/internal/controller/inventory"
	"heddle/internal/controller/visibility"
	"heddle/internal/platform/access"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
	"heddle/internal/spec"
)

// ApplyDefinition makes the definition what a file says.
func (p people) ApplyDefinition(ctx context.Context, q *controllerv1.ApplyDefinitionRequest) (
	out *controllerv1.ApplyDefinitionResponse, err error) {
	return p.applied(ctx, &defining{ApplyDefinitionRequest: q})
}

// defining is a change of the definition that is asked for, with what comes along where a backup is imported.
type defining struct {
	*controllerv1.ApplyDefinitionRequest
	// ids are identifiers for objects that are new.
	ids map[slice.Key]string
	// addresses are those of hosts that have none here.
	addresses map[string][]inventory.Granted
	// with are written in the transaction from which on the change counts.
	with []store.Change
	// importing: it is an import's, made on the revision base; its static ports are there already, but in a dry run.
	importing bool
	base      int64
	// takesBack is the rollout whose change is taken back, for the person takesBackFor; "" for by itself.
	takesBack, takesBackFor string
}

// applied makes a change of the definition, and waits for the hosts.
func (p people) applied(ctx context.Context, q *defining) (out *controllerv1.ApplyDefinitionResponse, err error) {
	err = granter(p).onBook(ctx, func() error {
		out, err = p.applyDefinition(ctx, q)
		return err
	})
	if err != nil || q.GetDryRun() {
		return out, rpcerrors.OfStore(err)
	}
	if err := granter(p).fillAddresses(ctx); err != nil { // of hosts that joined meanwhile
		p.Log.Warn("hosts that joined meanwhile have not got their addresses yet", "err", err)
	}
	switch {
	case out.GetTogether() != nil:
		err = p.awaitTogether(ctx, q.ApplyDefinitionRequest, out)
	case out.GetRollout() != nil: // its driver waits for the hosts
	default:
		out.Waiting, err = p.await(ctx, out.GetRevision(), out.GetHosts(), q.GetWait().AsDuration())
	}
	if err != nil { // what is written counts
		out.Notes = append(out.Notes, fmt.Sprintf("the change counts, as revision %d, and which hosts have it active "+
			"is not known: %v", out.GetRevision(), err))
	}
	return out, nil
}

// applyDefinition makes the change. An error that is a conflict about the book of addresses is the store's own.
func (p people) applyDefinition(ctx context.Context, q *defining) (*controllerv1.ApplyDefinitionResponse, error) {
	stages, err := stagesOf(q.ApplyDefinitionRequest)
	if err != nil {
		return nil, err
	}
	next := &slice.Set{}
	if q.takesBack == "" {
		if next, err = p.wanted(ctx, q.ApplyDefinitionRequest); err != nil {
			return nil, err
		}
	}
	err = p.Store.Sync(ctx)
	if err != nil && (!q.GetDryRun() || !errors.Is(err, store.ErrNoSpace)) { // at the quota nobody can write
		return nil, rpcerrors.OfStore(err)
	}
	if err := p.definitions().Fold(ctx); err != nil {
		return nil, rpcerrors.OfStore(err)
	}
	if !q.importing && !q.GetDryRun() {
		if err := (importer{p}).settled(ctx); err != nil {
			return nil, err
		}
		if err := clearPorts(ctx, p.Server); err != nil {
			return nil, err
		}
	}
	current, _ := p.Store.Get(definition.Key())
	if q.GetRevision() > 0 && q.GetRevision() != current.Version {
		return nil, connect.NewError(connect.CodeAborted,
			fmt.Sprintf("the definition has changed since: the change was "+
				"made on revision %d, it is at %d now; read it again (heddle definition show)", q.GetRevision(),
				current.Version))
	}
	if q.importing && q.base != current.Version {
		return nil, connect.NewError(connect.CodeAborted, "somebody else changed the definition meanwhile: import "+
			"again")
	}
	have, versions := p.stored()
	var kept []string
	switch {
	case q.takesBack != "":
		if next, err = (stager{p}).undone(q, have); err != nil {
			return nil, err
		}
	case q.GetRestore() == 0:
		kept = keepUnknown(have, next)
	}
	if next, err = judged(ctx, q.ApplyDefinitionRequest, have, next); err != nil {
		return nil, err
	}
	if err := p.AllKnow(inventory.KindsIn(next)); err != nil {
		return nil, err
	}
	way, err := stager{p}.wayOf(ctx, q, stages, have, next)
	if err != nil {
		return nil, err
	}
	change := slice.Between(have, next)
	there := p.askHosts(ctx, &controllerv1.GetHostsHereRequest{Reports: true})
	p.fleet.hear(there)
	out := &controllerv1.ApplyDefinitionResponse{Changes: told(have, change), Kept: kept, Superseded: way.superseded()}
	after, err := inventory.New(next)
	if err != nil {
		return nil, err
	}
	defer withheld{p.fleet}.foretell(after, way.ending.ids(), way.before)()
	if !q.GetForce() {
		if err := p.fleet.unused(change, there); err != nil {
			return nil, err
		}
		if err := p.fleet.keeper().served(after, there); err != nil {
			return nil, err
		}
	}
	sizes := p.fleet.keeper().sizes(after)
	err = sizes.check(q.GetForce())
	if !q.importing || !q.GetDryRun() { // the ports of an import are not there yet
		err = errors.Join(err, claimant(p).settingsFit(after))
	}
	if err != nil {
		return nil, err
	}
	p.fleet.mu.Lock()
	granted, full := addressing{p.fleet}.grantOver(after, addressing{p.fleet}.members(), q.addresses)
	p.fleet.mu.Unlock()
	if err := exhausted(full); err != nil {
		return nil, err
	}
	out.Revision = current.Version
	if out.Hosts, err = p.fleet.concerned(after, granted); err != nil {
		return nil, err
	}
	if err := p.fleet.foresee(there, have, change, after, granted, q.ApplyDefinitionRequest, out); err != nil {
		return nil, err
	}
	if err := way.prepare(ctx, p, q, after, granted); err != nil && !change.Empty() {
		return nil, err
	}
	if q.GetDryRun() {
		out.Rollout = way.stages.foreseen()
		out.Foreseen = foreseer(p).everywhere(ctx, q.ApplyDefinitionRequest, after, granted, out.GetHosts())
		return out, p.awayFrom(q.ApplyDefinitionRequest, out, there)
	}
	if change.Empty() {
		out.Rollout = rollouts{p}.making(ctx)
		if err := askForPorts(ctx, p.Server, sizes.work(q.GetForce())); err != nil {
			return nil, err
		}
		if err := way.endAlone(ctx, p); err != nil {
			return nil, err
		}
		settlePorts(ctx, p.Server, out)
		return out, nil
	}
	addresses, err := granted.objects(versions)
	if err != nil {
		return nil, err
	}
	all := slice.Change{Put: slices.Concat(change.Put, addresses.Put),
		Removed: slices.Concat(change.Removed, addresses.Removed)}
	if way.agreed, err = p.agree(ctx, q.ApplyDefinitionRequest, all, after, granted, out, there); err != nil {
		return nil, err
	}
	if err := way.stages.writeParts(ctx, p); err != nil {
		return nil, err
	}
	entry := entryOf(ctx, q.ApplyDefinitionRequest, current.Version, out.GetChanges())
	entry.How, entry.Restores = way.how(), cmp.Or(entry.Restores, way.restores(current.Version))
	record, entry, err := p.recorder().Record(ctx, entry, have, change)
	if err != nil {
		return nil, rpcerrors.OfStore(err)
	}
	definitions := p.definitions()
	definitions.Ids, definitions.Ports = q.ids, sizes.work(q.GetForce())
	out.Revision, err = definitions.Write(ctx, q.GetFile(), current.Version, all, versions,
		func() ([]store.Change, error) {
			more, err := way.changes(current.Version)
			work, errWork := portsOf(p.Server).Changes(definitions.Ports)
			return slices.Concat(granted.lock(), record, more, work, q.with), errors.Join(err, errWork)
		})
	if err != nil {
		return nil, err
	}
	way.written(ctx, p, out)
	p.recorder().Prune(ctx, entry)
	access.Note(ctx, append(out.GetChanges(), fmt.Sprintf("revision %d", out.GetRevision()))...)
	p.Log.Info("the definition was changed", "file", q.GetFile(), "revision", out.Revision, "changes", out.Changes)
	settlePorts(context.WithoutCancel(ctx), p.Server, out) // also where the caller leaves
	return out, nil
}

// entryOf is what the history says of a change.
func entryOf(ctx context.Context, q *controllerv1.ApplyDefinitionRequest, base int64, lines []string) history.Entry {
	return history.Entry{Base: base, At: time.Now().UTC(), Who: access.NameOf(ctx), File: q.GetFile(),
		Message: q.GetMessage(), Restores: q.GetRestore(), Objects: lines}
}

func (p people) recorder() definition.Recorder {
	return definition.Recorder{Past: p.Past, Keep: p.KeepHistory,
		Log: p.Log}
}

func (s *Server) definitions() definition.Writer {
	return definition.Writer{Store: s.Store, Log: s.Log}
}

// stored is the definition in the store, with the versions of its objects.
func (s *Server) stored() (*slice.Set, map[slice.Key]int64) {
	set, versions := &slice.Set{}, map[slice.Key]int64{}
	for _, kind := range inventory.Kinds() {
		for _, o := range s.Store.List(store.Kind(kind)) {
			k := slice.Key{Kind: kind, Name: o.Name}
			set.Put(slice.Object{Key: k, Doc: o.Doc})
			versions[k] = o.Version
		}
	}
	return set, versions
}

// told says what a change does, a line each.
func told(have *slice.Set, c slice.Change) (lines []string) {
	for _, o := range c.Put {
		word := "added"
		if _, ok := have.Get(o.Key); ok {
			word = "changed"
		}
		lines = append(lines, fmt.Sprintf("%s %s", o.Key, word))
	}
	for _, k := range c.Removed {
		lines = append(lines, fmt.Sprintf("%s removed", k))
	}
	return lines
}

// unused refuses a change that removes a port group in use.
func (f *fleet) unused(c slice.Change, there *elsewhere) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lines []string
	for _, k := range c.Removed {
		if k.Kind == slice.PortGroup {
			lines = append(lines, f.users(k.Name, there)...)
		}
	}
	if len(lines) > 0 {
		return connect.NewError(connect.CodeFailedPrecondition, strings.Join(lines, "\n"))
	}
	return nil
}

// users says who uses a port group, or might: a host that is away and has not reported its ports.
func (f *fleet) users(group string, there *elsewhere) (lines []string) {
	sw, name, _ := strings.Cut(group, "/")
	for _, h := range f.sorted() {
		if _, has := f.inventory.Switches(h.doc.Name, h.doc.Labels)[sw]; !has {
			continue
		}
		report, _ := there.reportOf(h)
		if report == nil {
			lines = append(lines, fmt.Sprintf("port group %s may be in use on host %s, which is not connected: wait "+
				"for it, "+
				"or remove the port group with --force; the host goes on by what it has", group, h.doc.Name))
			continue
		}
		if ports := usersOf(report, sw, name); len(ports) > 0 {
			lines = append(lines, fmt.Sprintf("port group %s is in use on host %s, by %s: move these ports, or "+
				"remove it "+
				"with --force", group, h.doc.Name, strings.Join(ports, ", ")))
		}
	}
	return lines
}

// sorted are the hosts by name. The caller holds the lock.
func (f *fleet) sorted() []*host {
	list := slices.Collect(maps.Values(f.hosts))
	slices.SortFunc(list, byName)
	return list
}

func byName(a, b *host) int { return strings.Compare(a.doc.Name, b.doc.Name) }

// concerned are the hosts whose slices differ with another definition.
func (f *fleet) concerned(after *inventory.Inventory, g *grant) (names []string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.sorted() {
		was, err := f.target(h)
		if err != nil {
			return nil, err
		}
		will, _, err := contents{f}.sliceOf(after, h, g.of(f.addresses, h.doc.Name))
		if err != nil {
			return nil, err
		}
		if was.Hash() != will.set.Hash() {
			names = append(names, h.doc.Name)
		}
	}
	return names, nil
}

// GetDefinition reads the definition: one that has every change that was answered before, by whichever controller, or
// says that it may be old.
func (p people) GetDefinition(ctx context.Context, _ *controllerv1.GetDefinitionRequest) (
	*controllerv1.GetDefinitionResponse, error) {
	stale := p.fresh(ctx)
	p.fleet.mu.Lock()
	v, revision, epoch := p.fleet.inventory, p.fleet.revision, p.fleet.epoch
	p.fleet.mu.Unlock()
	if a := access.GrantedTo(ctx); !a.SeesAll() {
		seen, err := inventory.New(visibility.Visible(a, v.Objects()))
		if err != nil {
			return nil, err
		}
		v = seen
	}
	d, err := v.Definition()
	if err != nil {
		return nil, err
	}
	text, err := spec.FormatDefinition(d)
	return &controllerv1.GetDefinitionResponse{Revision: revision, Epoch: epoch,
		Content: notShown(v.Objects()) + string(text), Stale: stale}, err
}

// defaultLife is how long a token can be used where nobody says.
const defaultLife = time.Hour

// CreateJoinToken makes a token by which one host may join.
func (p people) CreateJoinToken(ctx context.Context, q *controllerv1.CreateJoinTokenRequest) (
	*controllerv1.CreateJoinTokenResponse, error) {
	terms := pki.JoinTerms{Life: defaultLife, By: access.NameOf(ctx), Labels: pki.LabelBounds{}}
	if q.GetLasts() != nil {
		terms.Life = q.GetLasts().AsDuration()
	}
	for k, v := range q.GetLabels() {
		if !spec.ValidName(k) || !spec.ValidName(v) {
			return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Sprintf("%q is no label that a template can "+
				"ask for: its name and its value are names (letters, digits, . _ - / : and space inside)", k+"="+v))
		}
		terms.Labels[k] = []string{v}
	}
	if terms.Replaces = q.GetReplaces(); terms.Replaces != "" {
		id, labels, err := p.placeHad(terms.Replaces)
		if err != nil {
			return nil, err
		}
		terms.ReplacesID = id
		if len(terms.Labels) == 0 {
			terms.Labels = labels
		}
	}
	token, record, err := p.Authority.NewJoinToken(terms, p.TLS.Now())
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err.Error())
	}
	if err := p.keepToken(ctx, token.ID, record); err != nil {
		return nil, err
	}
	access.Note(ctx, "token "+string(token.ID))
	return &controllerv1.CreateJoinTokenResponse{Token: token.Text(), Expires: timestamppb.New(record.Expires)}, nil
}
