package rpc

import (
	controllerv1 "heddle/api/heddle/controller/v1"
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
