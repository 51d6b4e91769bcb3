package rpc

import (
	"cmp"
	"slices"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/inventory"
	"heddle/internal/slice"
)

// contents is the part of a fleet that makes what hosts are to have: what many of them share, and what is a host's own.
type contents struct{ *fleet }

// renew finds out anew what a host is to have; nil for no host. The caller holds the lock.
func (f contents) renew(h *host) {
	if h == nil {
		return
	}
	h.part, h.of = nil, nil
	if h.conn != nil {
		h.conn.poke()
	}
}

// sliceOf is what a host is to have by a definition with these addresses, and which host ports are not in it: without
// the changes that it is not to have yet (S102). The caller holds the lock.
func (f contents) sliceOf(v *inventory.Inventory, h *host, granted []inventory.Granted) (fit, []string, error) {
	v, err := withheld(f).definitionOf(v, h)
	if err != nil {
		return fit{}, nil, err
	}
	return f.sliceBy(v, h, granted)
}

// sliceBy is what a host is to have by the whole of a definition. The caller holds the lock.
func (f contents) sliceBy(v *inventory.Inventory, h *host, granted []inventory.Granted) (fit, []string, error) {
	shared, err := v.Slice(h.doc.Name, h.doc.Labels)
	if err != nil {
		return fit{}, nil, err
	}
	var bound map[string]string
	if v.HasSettings() {
		bound = f.adapters.Bindings.GroupsOn(h.id)
	}
	own, without, err := v.Own(inventory.Member{ID: h.id, Name: h.doc.Name, Labels: h.doc.Labels}, granted, bound)
	if err != nil {
		return fit{}, nil, err
	}
	all, mine := h.fitter.fit(shared), h.fitter.fitOwn(own)
	return fit{mine.set.Over(all.set), slices.Concat(all.lacks, mine.lacks)}, without, nil
}

// remember remembers what hosts share of a content, so that one that comes back is sent the difference. The caller
// holds the lock.
func (f contents) remember(set *slice.Set) {
	_, shared := set.Parts()
	if _, ok := f.sets[shared.Hash()]; !ok {
		f.sets[shared.Hash()] = shared
		if f.order = append(f.order, shared.Hash()); len(f.order) > mostSets {
			delete(f.sets, f.order[0])
			f.order = f.order[1:]
		}
	}
}

// remembered is the content of that hash, nil where it is not known: of a host whose own part is as before, what hosts
// share may be older. The caller holds the lock.
func (f contents) remembered(h *host, hash slice.Hash) *slice.Set {
	if set := f.sets[hash]; set != nil || hash == (slice.Hash{}) {
		return cmp.Or(set, &slice.Set{})
	}
	now, err := f.target(h)
	if err != nil {
		return nil
	}
	own, _ := now.Parts()
	if set := f.sets[hash.Without(own.Hash())]; set != nil {
		return own.Over(set)
	}
	return nil
}

// ownUpdate is an update for a host with objects of its own: that of what hosts share, and these. The caller holds the
// lock.
func (f contents) ownUpdate(was, own, shared, to *slice.Set, whole bool) *controllerv1.SliceUpdate {
	mine, before := was.Parts()
	from := before
	if whole {
		from = nil
	}
	all := f.update(from, shared)
	hash, old := to.Hash(), was.Hash()
	u := &controllerv1.SliceUpdate{Whole: whole, Put: slices.Clip(all.GetPut()), Removed: slices.Clip(all.GetRemoved()),
		Version: &controllerv1.SliceVersion{Epoch: f.epoch, Revision: f.revision, Hash: hash[:]}}
	if !whole {
		u.From = old[:]
	}
	addChange(u, slice.Between(mine, own))
	return u
}

// addChange adds to an update what makes one content another.
func addChange(u *controllerv1.SliceUpdate, c slice.Change) {
	for _, o := range c.Put {
		u.Put = append(u.Put, &controllerv1.SliceObject{Kind: string(o.Kind), Name: o.Name, Doc: o.Doc})
	}
	for _, k := range c.Removed {
		u.Removed = append(u.Removed, &controllerv1.SliceKey{Kind: string(k.Kind), Name: k.Name})
	}
}

// hostPorts are those that the definition gives a host. The caller holds the lock.
func (f contents) hostPorts(h *host) (list []*controllerv1.DefinedHostPort) {
	set, err := f.target(h)
	if err != nil {
		return nil
	}
	own, _ := set.Parts()
	for o := range own.All() {
		if p, err := hostPortOf(own, o.Key); o.Kind == slice.Port && err == nil {
			list = append(list, &controllerv1.DefinedHostPort{Name: p.Name, Switch: p.Switch, PortGroup: p.PortGroup,
				Addresses: p.Addresses})
		}
	}
	return list
}
