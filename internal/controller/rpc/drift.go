package rpc

import (
	"context"
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/history"
	"heddle/internal/controller/inventory"
	"heddle/internal/slice"
)

// compare adds to out which objects are not active on a host as the definition has them, as far as is known. The caller
// holds the lock.
func (f syncer) compare(h *host, out *controllerv1.SyncedHost) {
	if !h.active.known && h.conn == nil {
		return // it was away all the time that this controller has been up
	}
	out.ActiveRevision = h.active.revision
	to, err := f.target(h)
	if err != nil || h.active.known && h.active.hash == to.Hash() {
		return
	}
	active := contents(f).remembered(h, h.active.hash)
	if !h.active.known {
		active = &slice.Set{}
	}
	if active == nil {
		out.Differences = []string{"what is active there is of an older definition, which this controller does not " +
			"remember"}
		return
	}
	add := func(k slice.Key, kind controllerv1.DriftKind, is string) {
		out.Drift = append(out.Drift, &controllerv1.HostDrift{Object: k.String(), Kind: kind})
		out.Differences = append(out.Differences, k.String()+" is "+is)
	}
	c := slice.Between(active, to)
	for _, o := range c.Put {
		if _, ok := active.Get(o.Key); ok {
			add(o.Key, controllerv1.DriftKind_DRIFT_KIND_OLDER, "older")
		} else {
			add(o.Key, controllerv1.DriftKind_DRIFT_KIND_MISSING, "missing")
		}
	}
	for _, k := range c.Removed {
		add(k, controllerv1.DriftKind_DRIFT_KIND_EXTRA, "there still")
	}
}

// mostDated is at how many changes of the definition it is looked at most, to say since when hosts differ.
const mostDated = 1000

// date says of what differs on hosts since when, by the history: since the first change of the object, or of what says
// who has it, after the revision that is active on the host. What the history lacks stays without a date.
func (h historian) date(ctx context.Context, hosts []*controllerv1.SyncedHost) {
	lowest, differs := int64(-1), false
	for _, o := range hosts {
		if len(o.GetDrift()) > 0 && (!differs || o.GetActiveRevision() < lowest) {
			lowest, differs = o.GetActiveRevision(), true
		}
	}
	if !differs {
		return
	}
	list, err := h.Past.Newest(ctx, 0, mostDated)
	if err != nil {
		h.Log.Warn("the history does not say since when hosts differ", "err", err)
		return
	}
	for _, r := range list { // the newest first: the first change after the host's revision is found last
		if r.Revision <= lowest {
			return
		}
		s, err := h.step(ctx, r)
		if err != nil {
			h.Log.Warn("a record of the history does not say since when hosts differ", "revision", r.Revision,
				"err", err)
			continue
		}
		for _, o := range hosts {
			if o.GetActiveRevision() < r.Revision {
				dateBy(o, s)
			}
		}
	}
}

// dateBy dates what a change of the definition concerns of what differs on a host.
func dateBy(o *controllerv1.SyncedHost, s history.Step) {
	var keys []slice.Key
	for _, put := range s.Put {
		keys = append(keys, put.Key)
	}
	keys = append(keys, s.Removed...)
	// Templates and entries of hosts say which host has what, with which devices.
	all := slices.ContainsFunc(keys, func(k slice.Key) bool {
		return k.Kind == inventory.Template || k.Kind == inventory.Host
	})
	for _, d := range o.GetDrift() {
		if all || slices.ContainsFunc(keys, func(k slice.Key) bool { return k.String() == d.GetObject() }) {
			d.Since, d.Revision, d.Who, d.Message = timestamppb.New(s.At), s.Revision, s.Who, s.Message
		}
	}
}
