package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/backup"
	"heddle/internal/controller/definition"
	"heddle/internal/controller/inventory"
	"heddle/internal/controller/part"
	"heddle/internal/controller/pipeline"
	"heddle/internal/platform/access"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
	"heddle/internal/spec"
)

// A backup comes in like this: static ports with their numbers are written first, for port groups that do not count
// yet, while an object says so, the mark. The transaction from which on the definition counts removes the mark. Where
// the mark stays, because the controller was killed, whoever changes the definition next removes those ports first.

// markKind is the kind of the mark.
const markKind store.Kind = "import"

// MarkKey names it.
func MarkKey() store.Key { return store.Key{Kind: markKind, Name: "current"} }

// markDoc says who imports, and for which port groups.
type markDoc struct {
	ID     string    `json:"id"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	Groups []string  `json:"groups"`
}

// abandoned is when the mark of another controller does not count any more.
const abandoned = 3 * time.Minute

// importing is what an import is to do.
type importing struct {
	file       *backup.File
	keep       bool
	define     *pipeline.Request
	collisions []string
	notes      []string
	ports      []backup.PortGroup
}

// ImportBackup brings a backup in, all of it or nothing.
func (s *Service) ImportBackup(ctx context.Context, q *controllerv1.ImportBackupRequest) (
	*controllerv1.ImportBackupResponse, error) {
	f, err := backup.Decode(cmp.Or(q.GetFile(), "the backup"), []byte(q.GetContent()))
	if err == nil && q.GetAs() != "" {
		err = f.Rename(q.GetAs())
	}
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err.Error())
	}
	if err := s.CatchUp(ctx); err != nil {
		return nil, rpcerrors.OfStore(err)
	}
	if err := s.Settled(ctx); err != nil {
		return nil, err
	}
	if err := s.Fold(ctx); err != nil {
		return nil, rpcerrors.OfStore(err)
	}
	if !q.GetDryRun() {
		if err := s.Ports.ClearLeft(ctx, s.CatchUp); err != nil {
			return nil, rpcerrors.OfStore(err)
		}
	}
	im, err := s.prepare(f, q)
	if err != nil {
		return nil, err
	}
	out := answer(im)
	if len(im.collisions) > 0 {
		if q.GetDryRun() {
			return out, nil
		}
		return nil, connect.NewError(connect.CodeFailedPrecondition, strings.Join(im.collisions, "\n")+"\nnothing was "+
			"imported: --replace restores what has the same name in place, --as gives the switch of a backup of one "+
			"switch another name, and --identifiers new takes new numbers")
	}
	if out.Defined, err = s.carryOut(ctx, im); err != nil || q.GetDryRun() {
		return out, err
	}
	access.Note(ctx, fmt.Sprintf("backup %s of revision %d of cluster %s, identifiers %s", q.GetFile(), f.Revision,
		f.Cluster, out.GetIdentifiers()))
	return out, nil
}

// carryOut makes an import, or finds out what it would do.
func (s *Service) carryOut(ctx context.Context, im *importing) (*controllerv1.ApplyDefinitionResponse, error) {
	if im.define.GetDryRun() {
		return s.Apply(ctx, im.define)
	}
	if !s.importing.TryLock() {
		return nil, errImporting(time.Now())
	}
	defer s.importing.Unlock()
	drop, err := s.stage(ctx, im)
	if err != nil {
		return nil, errors.Join(rpcerrors.OfStore(err), drop())
	}
	out, err := s.Apply(ctx, im.define)
	if err != nil {
		return nil, errors.Join(err, drop())
	}
	return out, nil
}

func answer(im *importing) *controllerv1.ImportBackupResponse {
	out := &controllerv1.ImportBackupResponse{Identifiers: "new", Collisions: im.collisions, Notes: im.notes}
	if im.keep {
		out.Identifiers = "keep"
	}
	for _, g := range im.ports {
		out.StaticPorts += int32(len(g.Free) + len(g.Bound))
		out.Bindings += int32(len(g.Bound))
	}
	for _, list := range im.define.Addresses {
		out.Addresses += int32(len(list))
	}
	return out
}

// prepare says what an import is to do. Nothing is written yet.
func (s *Service) prepare(f *backup.File, q *controllerv1.ImportBackupRequest) (*importing, error) {
	set, _ := definition.Stored(s.Store)
	now, err := inventory.DefinitionOf(set)
	if err != nil {
		return nil, err
	}
	im := &importing{file: f}
	switch q.GetIdentifiers() {
	case "keep", "new":
		im.keep = q.GetIdentifiers() == "keep"
	case "":
		im.keep = set.Len() == 0 && len(s.Store.List(store.KindPorts)) == 0
	default:
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Sprintf("identifiers %q: \"keep\", or \"new\"",
			q.GetIdentifiers()))
	}
	next, collisions := f.Onto(now, backup.How{Replace: q.GetReplace(), Keep: im.keep})
	im.collisions = collisions
	current, _ := s.Store.Get(definition.Key())
	im.define = &pipeline.Request{Imports: true, Base: importedOn(current.Version)}
	im.define.Addresses, collisions = s.addressesOf(f)
	im.collisions = append(im.collisions, collisions...)
	if im.keep {
		im.define.IDs, collisions = s.idsOf(f, set)
		im.collisions = append(im.collisions, collisions...)
		s.choosePorts(im, set)
	}
	s.note(im, q.GetReplace())
	var text []byte
	if len(im.collisions) == 0 {
		if err := next.Validate(); err != nil {
			return nil, connect.NewError(connect.CodeFailedPrecondition, "the backup and what there is do not go "+
				"together:\n"+err.Error())
		}
		if text, err = spec.FormatDefinition(next); err != nil {
			return nil, err
		}
	}
	im.define.ApplyDefinitionRequest = &controllerv1.ApplyDefinitionRequest{File: q.GetFile(), Content: string(text),
		DryRun: q.GetDryRun(), Force: q.GetForce(), Wait: q.GetWait(), AllowUnprotected: q.GetAllowUnprotected(),
		Message: cmp.Or(q.GetMessage(), fmt.Sprintf("import of a backup of revision %d", f.Revision))}
	im.define.Source = s.Source(im.define.ApplyDefinitionRequest)
	return im, nil
}

// idsOf are the identifiers for objects that come, and collisions those that other objects have here.
func (s *Service) idsOf(f *backup.File, have *slice.Set) (ids map[slice.Key]string, collisions []string) {
	used := map[string]store.Key{}
	for _, kind := range s.storeKinds() {
		for _, o := range s.Store.List(kind) {
			used[o.ID] = o.Key
		}
	}
	ids = map[slice.Key]string{}
	for kind, names := range f.Identifiers {
		for name, id := range names {
			key := slice.Key{Kind: kind, Name: name}
			if _, there := have.Get(key); there {
				continue // it stays the object that it is
			}
			if other, taken := used[id]; taken {
				collisions = append(collisions, fmt.Sprintf("identifier %s of %s is that of %s here", id, key, other))
				continue
			}
			ids[key] = id
		}
	}
	slices.Sort(collisions)
	return ids, collisions
}

func (s *Service) storeKinds() (kinds []store.Kind) {
	for _, kind := range inventory.Kinds() {
		kinds = append(kinds, store.Kind(kind))
	}
	return kinds
}

// choosePorts chooses the static ports that come with their numbers: those of port groups that are not there.
func (s *Service) choosePorts(im *importing, have *slice.Set) {
	numbers, nics := map[string]string{}, map[part.Adapter]string{}
	for _, o := range s.Store.List(store.KindPorts) {
		ports, err := store.DecodePorts(&o)
		if err != nil {
			im.collisions = append(im.collisions, err.Error())
		}
		for _, p := range ports {
			numbers[p.ID] = p.Group
			if p.Binding != nil {
				nics[part.AdapterOf(p.Binding.VM, p.Binding.Adapter)] = p.ID
			}
		}
	}
	for _, g := range im.file.StaticPorts {
		if _, there := have.Get(slice.Key{Kind: slice.PortGroup, Name: g.Group}); there {
			im.notes = append(im.notes, fmt.Sprintf("port group %s keeps the static ports that it has", g.Group))
			continue
		}
		for _, id := range g.Free {
			clash(im, numbers, id, g.Group)
		}
		for _, p := range g.Bound {
			clash(im, numbers, p.ID, g.Group)
			if other := nics[part.AdapterOf(p.VM, p.Adapter)]; other != "" {
				im.collisions = append(im.collisions, fmt.Sprintf("adapter %s of VM %s has static port %s here",
					p.Adapter,
					p.VM, other))
			}
		}
		im.ports = append(im.ports, g)
	}
}

func clash(im *importing, numbers map[string]string, id, group string) {
	if other := numbers[id]; other != "" {
		im.collisions = append(im.collisions, fmt.Sprintf("static port %s of %s is one of %s here", id, group, other))
	}
}

// hostIDs are the ids of the hosts of the cluster, by their names.
func (s *Service) hostIDs() map[string]string {
	ids := map[string]string{}
	for _, h := range s.Hosts() {
		ids[h.Name] = h.ID
	}
	return ids
}

// note says what does not come, and what is to be done besides.
func (s *Service) note(im *importing, replace bool) {
	f := im.file
	if _, bound := f.Ports(); !im.keep && bound > 0 {
		im.notes = append(im.notes, fmt.Sprintf("the numbers of static ports do not come, nor whose %d of them "+
			"were: an "+
			"adapter gets a port when its guest connects", bound))
	}
	if n := len(f.Definition.Ports); !im.keep && n > 0 {
		text := fmt.Sprintf("settings of %d static ports do not come, since the ports have other numbers", n)
		if replace && f.Switch == "" {
			text += "; those that there are go"
		}
		im.notes = append(im.notes, text)
	}
	here := s.hostIDs()
	for _, h := range f.Hosts {
		if here[h.Name] != "" {
			continue
		}
		text := fmt.Sprintf("host %s has to join: heddle host token", h.Name)
		for _, k := range slices.Sorted(maps.Keys(h.Labels)) {
			text += fmt.Sprintf(" --label %s=%s", k, h.Labels[k])
		}
		im.notes = append(im.notes, text)
	}
}

// stage writes the static ports. drop takes back what was written, if the definition does not count.
func (s *Service) stage(ctx context.Context, im *importing) (drop func() error, err error) {
	drop = func() error { return nil }
	if len(im.ports) == 0 {
		return drop, nil
	}
	doc := markDoc{ID: store.NewID(), By: s.Roster.This.ID, At: time.Now()}
	for _, g := range im.ports {
		doc.Groups = append(doc.Groups, g.Group)
	}
	mark := &store.Change{Key: MarkKey(), IfVersion: store.New}
	if mark.Doc, err = json.Marshal(doc); err != nil {
		return drop, err
	}
	if mark.IfVersion, err = s.Store.Write(ctx, []store.Change{*mark}); err != nil {
		return drop, err
	}
	drop = func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTime)
		defer cancel()
		return s.drop(ctx, doc.ID)
	}
	here := s.hostIDs()
	for _, g := range im.ports {
		doc.At = time.Now()
		if mark.Doc, err = json.Marshal(doc); err != nil {
			return drop, err
		}
		if err = s.Store.ImportPorts(ctx, g.Group, portsOf(&g, here), mark); err != nil {
			return drop, err
		}
	}
	im.define.With = []store.Change{{Key: MarkKey(), Delete: true, IfVersion: mark.IfVersion}}
	return drop, s.CatchUp(ctx)
}

// dropTime bounds how long an import that failed is taken back; what is left then is removed before the next change.
const dropTime = 30 * time.Second

// portsOf are the ports of a group as the store has them, with the identifiers of the hosts by their names. A host that
// joined again has another one.
func portsOf(g *backup.PortGroup, here map[string]string) (list []store.Port) {
	for _, id := range g.Free {
		list = append(list, store.Port{ID: id})
	}
	for _, p := range g.Bound {
		host := cmp.Or(here[p.Host], p.HostID, p.Host)
		list = append(list, store.Port{ID: p.ID, Binding: &store.Binding{Host: host, VM: p.VM, Adapter: p.Adapter,
			MAC: p.MAC, VNI: p.VNI}})
	}
	return list
}

// Settled removes what an import left behind that was cut off, and refuses a change while one is under way.
func (s *Service) Settled(ctx context.Context) error {
	o, there := s.Store.Get(MarkKey())
	if !there {
		return nil
	}
	var doc markDoc
	if err := json.Unmarshal(o.Doc, &doc); err != nil {
		return fmt.Errorf("the mark of an import is damaged: %w", err)
	}
	running := time.Since(doc.At) < abandoned
	if doc.By == s.Roster.This.ID {
		if running = !s.importing.TryLock(); !running {
			defer s.importing.Unlock()
		}
	}
	if running {
		return errImporting(doc.At)
	}
	s.Log.Warn("an import of a backup was cut off; what it left is removed", "groups", doc.Groups)
	return rpcerrors.OfStore(s.drop(ctx, doc.ID))
}

func errImporting(since time.Time) error {
	return connect.NewError(connect.CodeUnavailable, fmt.Sprintf("a backup is being imported since %s: try again when "+
		"that is over", since.Local().Format(time.TimeOnly)))
}

// drop removes the static ports of an import that does not count, and its mark.
func (s *Service) drop(ctx context.Context, id string) error {
	if err := s.Store.Sync(ctx); err != nil {
		return err
	}
	o, there := s.Store.Get(MarkKey())
	var doc markDoc
	if !there || json.Unmarshal(o.Doc, &doc) != nil || doc.ID != id {
		return nil // it counts, or somebody else has removed it
	}
	for _, group := range doc.Groups {
		if _, counts := s.Store.Get(store.Key{Kind: store.KindPortGroup, Name: group}); counts {
			continue
		}
		if err := s.Store.RemovePorts(ctx, group, true, nil); err != nil {
			return err
		}
	}
	_, err := s.Store.Write(ctx, []store.Change{{Key: MarkKey(), Delete: true, IfVersion: o.Version}})
	return err
}

// importedOn refuses an import that was prepared on another revision.
func importedOn(revision int64) func(int64) error {
	return func(now int64) error {
		if revision == now {
			return nil
		}
		return connect.NewError(connect.CodeAborted, "somebody else changed the definition meanwhile: import again")
	}
}
