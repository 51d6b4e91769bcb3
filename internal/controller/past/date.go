package past

import (
	"context"
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/history"
	"heddle/internal/controller/inventory"
	"heddle/internal/slice"
)

// mostDated is at how many changes of the definition it is looked at most, to say since when hosts differ.
const mostDated = 1000

// Date says of what differs on hosts since when, by the history: since the first change of the object, or of what says
// who has it, after the revision that is active on the host. What the history lacks stays without a date.
func (r Reader) Date(ctx context.Context, hosts []*controllerv1.SyncedHost) {
	lowest, differs := int64(-1), false
	for _, o := range hosts {
		if len(o.GetDrift()) > 0 && (!differs || o.GetActiveRevision() < lowest) {
			lowest, differs = o.GetActiveRevision(), true
		}
	}
	if !differs {
		return
	}
	list, err := r.Past.Newest(ctx, 0, mostDated)
	if err != nil {
		r.Log.Warn("the history does not say since when hosts differ", "err", err)
		return
	}
	for _, rec := range list { // the newest first: the first change after the host's revision is found last
		if rec.Revision <= lowest {
			return
		}
		s, err := r.step(ctx, rec)
		if err != nil {
			r.Log.Warn("a record of the history does not say since when hosts differ", "revision", rec.Revision,
				"err", err)
			continue
		}
		for _, o := range hosts {
			if o.GetActiveRevision() < rec.Revision {
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
