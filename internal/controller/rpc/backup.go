package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/backup"
	"heddle/internal/controller/definition"
	"heddle/internal/controller/inventory"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
	"heddle/internal/spec"
	"heddle/internal/spec/known"
)

// importer makes backups of what the cluster defines, compares the cluster with them, and brings them back.
type importer struct{ people }

// mostReads is how often a backup is begun anew because something was written meanwhile.
const mostReads = 20

// ExportBackup makes a backup.
func (i importer) ExportBackup(ctx context.Context, q *controllerv1.ExportBackupRequest) (
	*controllerv1.ExportBackupResponse, error) {
	f, err := i.file(ctx, q.GetSwitch())
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
func (s Front) Backup(ctx context.Context) ([]byte, error) {
	f, err := importer{people(s)}.file(ctx, "")
	if err != nil {
		return nil, err
	}
	return backup.Encode(f)
}

// file is a backup of what there is, as of one revision.
func (i importer) file(ctx context.Context, of string) (*backup.File, error) {
	if err := i.catchUp(ctx); err != nil {
		return nil, rpcerrors.OfStore(err)
	}
	if err := i.definitions().Fold(ctx); err != nil && !errors.Is(err, store.ErrNoSpace) {
		return nil, rpcerrors.OfStore(err)
	}
	for range mostReads {
		revision := i.Store.Revision()
		f, err := i.read(of)
		if err != nil || i.Store.Revision() == revision {
			return f, err
		}
	}
	return nil, connect.NewError(connect.CodeUnavailable, "the cluster's state changed all the while: try again")
}

// read reads what there is; something may be written meanwhile.
func (i importer) read(of string) (*backup.File, error) {
	set, _ := definition.Stored(i.Store)
	v, err := inventory.New(set)
	if err != nil {
		return nil, err
	}
	d, err := v.Definition()
	if err != nil {
		return nil, err
	}
	if d, err = onlyOf(d, of); err != nil {
		return nil, err
	}
	current, _ := i.Store.Get(definition.Key())
	f := &backup.File{Made: time.Now().UTC().Truncate(time.Second), Version: i.This.Version,
		Cluster: string(i.Authority.Trust().Cluster), Epoch: i.Epoch, Revision: current.Version, Switch: of,
		Definition: d, Notes: definition.NotShown(set), Identifiers: i.identifiers(d)}
	i.hostsInto(f)
	return f, i.portsInto(f)
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
func (i importer) identifiers(d *spec.Definition) map[slice.Kind]map[string]string {
	in, err := inventory.Of(d)
	if err != nil {
		return nil // it was just read
	}
	all := map[slice.Kind]map[string]string{}
	for _, kind := range inventory.Kinds() {
		for _, o := range i.Store.List(store.Kind(kind)) {
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
func (i importer) hostsInto(f *backup.File) {
	i.fleet.mu.Lock()
	defer i.fleet.mu.Unlock()
	for _, h := range i.fleet.sorted() {
		f.Hosts = append(f.Hosts, backup.Host{Name: h.doc.Name, ID: h.id, Labels: h.doc.Labels})
	}
	f.Addresses = map[string][]backup.Address{}
	for name, list := range i.fleet.addresses.All() {
		for _, g := range list {
			if f.Switch == "" || g.Switch == f.Switch {
				f.Addresses[name] = append(f.Addresses[name], backup.Address{Port: g.Port, Switch: g.Switch,
					Address: g.Address.String()})
			}
		}
	}
}

// portsInto puts the static ports into a backup.
func (i importer) portsInto(f *backup.File) error {
	names := map[string]string{}
	for _, h := range f.Hosts {
		names[h.ID] = h.Name
	}
	groups := map[string]*backup.PortGroup{}
	for _, o := range i.Store.List(store.KindPorts) {
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
func (i importer) CompareBackup(ctx context.Context, q *controllerv1.CompareBackupRequest) (
	*controllerv1.CompareBackupResponse, error) {
	was, err := backup.Decode(cmp.Or(q.GetFile(), "the backup"), []byte(q.GetContent()))
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err.Error())
	}
	now, err := i.file(ctx, "")
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
func (i importer) addressesOf(f *backup.File) (list map[string][]inventory.Granted, collisions []string) {
	have := i.fleet.addresses.All()
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
