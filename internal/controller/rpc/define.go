package rpc

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/addresses"
	"heddle/internal/controller/definition"
	"heddle/internal/controller/fanout"
	"heddle/internal/controller/history"
	"heddle/internal/controller/inventory"
	"heddle/internal/controller/past"
	"heddle/internal/controller/pipeline"
	"heddle/internal/controller/visibility"
	"heddle/internal/platform/access"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/slice"
	"heddle/internal/spec"
)

// ApplyDefinition makes the definition what a file says.
func (p people) ApplyDefinition(ctx context.Context, q *controllerv1.ApplyDefinitionRequest) (
	out *controllerv1.ApplyDefinitionResponse, err error) {
	return p.applied(ctx, &pipeline.Request{ApplyDefinitionRequest: q, Source: p.sourceOf(q),
		Base: madeOn(q.GetRevision())})
}

// applied makes a change of the definition, and waits for the hosts.
func (p people) applied(ctx context.Context, q *pipeline.Request) (out *controllerv1.ApplyDefinitionResponse,
	err error) {
	err = granter(p).onBook(ctx, func() error {
		out, err = pipeline.Make(ctx, storedDefinition{p.definitions()}, p.changeParts(), q)
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

// entryOf is what the history says of a change.
func entryOf(ctx context.Context, p *pipeline.Plan) history.Entry {
	words := slices.DeleteFunc(append([]string{p.Way}, p.Ends...), func(s string) bool { return s == "" })
	return history.Entry{Base: p.Base, At: time.Now().UTC(), Who: access.NameOf(ctx), File: p.GetFile(),
		Message: p.GetMessage(), Restores: cmp.Or(p.GetRestore(), p.Restores), Objects: p.Answer.GetChanges(),
		How: strings.Join(words, "; ")}
}

// reader answers about earlier definitions.
func (s *Server) reader() past.Reader {
	return past.Reader{Past: s.Past, Log: s.Log, Sync: s.Store.Sync, Now: contents{s.fleet}.defined, Kept: s.earlier,
		Turns: s.reading}
}

// defined is the definition that counts, with its revision.
func (f contents) defined() (*slice.Set, int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.inventory.Objects(), f.revision
}

func (p people) recorder() definition.Recorder {
	return definition.Recorder{Past: p.Past, Keep: p.KeepHistory,
		Log: p.Log}
}

func (s *Server) definitions() definition.Writer {
	return definition.Writer{Store: s.Store, Log: s.Log}
}

// portsOf makes static ports what the definition says.
func portsOf(s *Server) definition.PortKeeper {
	return definition.PortKeeper{Store: s.Store, Log: s.Log}
}

// unused refuses a change that removes a port group in use.
func (f *fleet) unused(c slice.Change, there *fanout.Answers) error {
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
func (f *fleet) users(group string, there *fanout.Answers) (lines []string) {
	sw, name, _ := strings.Cut(group, "/")
	for _, h := range f.sorted() {
		if _, has := f.inventory.Switches(h.doc.Name, h.doc.Labels)[sw]; !has {
			continue
		}
		report, _ := there.ReportOf(h.known())
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
func (f *fleet) concerned(after *inventory.Inventory, g *addresses.Grant) (names []string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.sorted() {
		was, err := f.target(h)
		if err != nil {
			return nil, err
		}
		will, _, err := contents{f}.sliceOf(after, h, g.Of(f.addresses, h.doc.Name))
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
	leave, err := p.reading.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
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
		Content: definition.NotShown(v.Objects()) + string(text), Stale: stale}, err
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
