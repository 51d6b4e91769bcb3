package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/backup"
	"heddle/internal/controller/definition"
	"heddle/internal/controller/inventory"
	"heddle/internal/controller/pipeline"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
	"heddle/internal/spec"
	"heddle/internal/spec/known"
)

// Store is what a service needs of the store.
type Store interface {
	definition.Store
	// Revision is that of what Get and List read.
	Revision() int64
	RemovePorts(ctx context.Context, group string, force bool, guard *store.Change) error
	ImportPorts(ctx context.Context, group string, ports []store.Port, mark *store.Change) error
}

// Options are what a service needs.
type Options struct {
	Store     Store
	Log       *slog.Logger
	Authority *pki.Current
	Roster    *peers.Roster
	Epoch     int64 // of the data
	// CatchUp returns when this controller has all that was written before.
	CatchUp func(context.Context) error
	// Fold makes changes of the definition part of its objects.
	Fold func(context.Context) error
	// Ports makes static ports what the definition says.
	Ports definition.PortKeeper
	// Hosts are those of the cluster, by name, Addresses those that they have from pools.
	Hosts     func() []backup.Host
	Addresses func() map[string][]inventory.Granted
	// Apply makes a change of the definition, Source is where a call has it from.
	Apply  func(context.Context, *pipeline.Request) (*controllerv1.ApplyDefinitionResponse, error)
	Source func(*controllerv1.ApplyDefinitionRequest) pipeline.Source
}

// Service answers people about backups.
type Service struct {
	Options
	// importing is held while this controller brings one in.
	importing sync.Mutex
}

// New is a service.
func New(o Options) *Service { return &Service{Options: o} }

// mostReads is how often a backup is begun anew because something was written meanwhile.
const mostReads = 20

// ExportBackup makes a backup.
func (s *Service) ExportBackup(ctx context.Context, q *controllerv1.ExportBackupRequest) (
	*controllerv1.ExportBackupResponse, error) {
	f, err := s.File(ctx, q.GetSwitch())
	if err != nil {
		return nil, err
	}
	text, err := backup.Encode(f)
	if err != nil {
		return nil, err
	}
	out := &controllerv1.ExportBackupResponse{Content: string(text), Revision: f.Revision,
		Switches: int32(len(f.Definition.Switches))}
	for _, sw := range f.Definition.Switches {
		out.PortGroups += int32(len(sw.PortGroups))
	}
	ports, bound := f.Ports()
	out.StaticPorts, out.Bindings = int32(ports), int32(bound)
	return out, nil
}

// Backup is what is defined, as "heddle backup export" writes it.
func (s *Service) Backup(ctx context.Context) ([]byte, error) {
	f, err := s.File(ctx, "")
	if err != nil {
		return nil, err
	}
	return backup.Encode(f)
}

// File is a backup of what there is, as of one revision.
func (s *Service) File(ctx context.Context, of string) (*backup.File, error) {
	if err := s.CatchUp(ctx); err != nil {
		return nil, rpcerrors.OfStore(err)
	}
	if err := s.Fold(ctx); err != nil && !errors.Is(err, store.ErrNoSpace) {
		return nil, rpcerrors.OfStore(err)
	}
	for range mostReads {
		revision := s.Store.Revision()
		f, err := s.read(of)
		if err != nil || s.Store.Revision() == revision {
			return f, err
		}
	}
	return nil, connect.NewError(connect.CodeUnavailable, "the cluster's state changed all the while: try again")
}

// read reads what there is; something may be written meanwhile.
func (s *Service) read(of string) (*backup.File, error) {
	set, _ := definition.Stored(s.Store)
	d, err := inventory.DefinitionOf(set)
	if err != nil {
		return nil, err
	}
	if d, err = onlyOf(d, of); err != nil {
		return nil, err
	}
	current, _ := s.Store.Get(definition.Key())
	f := &backup.File{Made: time.Now().UTC().Truncate(time.Second), Version: s.Roster.This.Version,
		Cluster: string(s.Authority.Trust().Cluster), Epoch: s.Epoch, Revision: current.Version, Switch: of,
		Definition: d, Notes: definition.NotShown(set), Identifiers: s.identifiers(d)}
	s.hostsInto(f)
	return f, s.portsInto(f)
}

// onlyOf is the part of a definition that is about one switch, "" for all of it.
func onlyOf(d *spec.Definition, of string) (*spec.Definition, error) {
	if of == "" {
		return d, nil
	}
	var names []string
	for _, sw := range d.Switches {
		names = append(names, sw.Name)
	}
	if !slices.Contains(names, of) {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Sprintf("the definition has no switch %q%s", of,
			known.Names{Owner: "the definition", All: names}.Instead(of)))
	}
	return backup.Of(d, of), nil
}

// identifiers are those of the objects of a definition.
func (s *Service) identifiers(d *spec.Definition) map[slice.Kind]map[string]string {
	in, err := inventory.Of(d)
	if err != nil {
		return nil // it was just read
	}
	all := map[slice.Kind]map[string]string{}
	for _, kind := range inventory.Kinds() {
		for _, o := range s.Store.List(store.Kind(kind)) {
			if _, ok := in.Get(slice.Key{Kind: kind, Name: o.Name}); !ok {
				continue
			}
			if all[kind] == nil {
				all[kind] = map[string]string{}
			}
			all[kind][o.Name] = o.ID
		}
	}
	return all
}

// hostsInto puts the hosts that have joined into a backup, with their addresses.
func (s *Service) hostsInto(f *backup.File) {
	f.Hosts = s.Hosts()
	f.Addresses = map[string][]backup.Address{}
	for name, list := range s.Addresses() {
		for _, g := range list {
			if f.Switch == "" || g.Switch == f.Switch {
				f.Addresses[name] = append(f.Addresses[name], backup.Address{Port: g.Port, Switch: g.Switch,
					Address: g.Address.String()})
			}
		}
	}
}

// portsInto puts the static ports into a backup.
func (s *Service) portsInto(f *backup.File) error {
	names := map[string]string{}
	for _, h := range f.Hosts {
		names[h.ID] = h.Name
	}
	groups := map[string]*backup.PortGroup{}
	for _, o := range s.Store.List(store.KindPorts) {
		ports, err := store.DecodePorts(&o)
		if err != nil {
			return err
		}
		for _, p := range ports {
			if sw, _, _ := strings.Cut(p.Group, "/"); f.Switch != "" && sw != f.Switch {
				continue
			}
			g := groups[p.Group]
			if g == nil {
				g = &backup.PortGroup{Group: p.Group}
				groups[p.Group] = g
			}
			if b := p.Binding; b != nil {
				g.Bound = append(g.Bound, backup.Port{ID: p.ID, VM: b.VM, Adapter: b.Adapter, MAC: b.MAC, VNI: b.VNI,
					Host: names[b.Host], HostID: b.Host})
			} else {
				g.Free = append(g.Free, p.ID)
			}
		}
	}
	for _, g := range groups {
		slices.SortFunc(g.Free, byNumber)
		slices.SortFunc(g.Bound, func(a, b backup.Port) int { return byNumber(a.ID, b.ID) })
		f.StaticPorts = append(f.StaticPorts, *g)
	}
	slices.SortFunc(f.StaticPorts, func(a, b backup.PortGroup) int { return cmp.Compare(a.Group, b.Group) })
	return nil
}

func byNumber(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// CompareBackup says what is different now.
func (s *Service) CompareBackup(ctx context.Context, q *controllerv1.CompareBackupRequest) (
	*controllerv1.CompareBackupResponse, error) {
	was, err := backup.Decode(cmp.Or(q.GetFile(), "the backup"), []byte(q.GetContent()))
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err.Error())
	}
	now, err := s.File(ctx, "")
	if err != nil {
		return nil, err
	}
	now.NameHosts(was)
	if was.Switch != "" {
		now.Switch, now.Definition = was.Switch, backup.Of(now.Definition, was.Switch)
		now.StaticPorts = slices.DeleteFunc(now.StaticPorts, func(g backup.PortGroup) bool {
			sw, _, _ := strings.Cut(g.Group, "/")
			return sw != was.Switch
		})
	}
	from, err := inventory.Of(was.Definition)
	if err != nil {
		return nil, err
	}
	to, err := inventory.Of(now.Definition)
	if err != nil {
		return nil, err
	}
	out := &controllerv1.CompareBackupResponse{From: was.Revision, To: now.Revision,
		Objects: definition.ObjectChanges(from, slice.Between(from, to)), Notes: backup.Changed(was, now)}
	for _, c := range backup.PortChanges(was, now) {
		out.Ports = append(out.Ports, &controllerv1.StaticPortChange{Port: c.Port, PortGroup: c.Group, Change: c.Change,
			Old: c.Old, New: c.New})
	}
	return out, nil
}

// addressesOf are the addresses of a backup whose hosts have none here. collisions are those that others have here.
func (s *Service) addressesOf(f *backup.File) (list map[string][]inventory.Granted, collisions []string) {
	have := s.Addresses()
	holder := map[netip.Addr]string{}
	for name, granted := range have {
		for _, g := range granted {
			holder[g.Address] = name
		}
	}
	list = map[string][]inventory.Granted{}
	for name, addresses := range f.Addresses {
		if len(have[name]) > 0 {
			continue
		}
		for _, a := range addresses {
			addr := netip.MustParseAddr(a.Address) // the file is checked
			if other := holder[addr]; other != "" {
				collisions = append(collisions, fmt.Sprintf("address %s of host %s is host %s's here", addr,
					name, other))
				continue
			}
			list[name] = append(list[name], inventory.Granted{Port: a.Port, Switch: a.Switch, Address: addr})
		}
	}
	return list, collisions
}
