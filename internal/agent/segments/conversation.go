package segments

import (
	"context"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/overlay/span"
	"heddle/internal/overlay/wire"
)

// Wanted returns once the host has overlay segments; false when ctx has ended. Like the others here, it is called from
// any goroutine.
func (k *Keeper) Wanted(ctx context.Context) bool {
	k.mu.Lock()
	wanted := k.wanted
	k.mu.Unlock()
	select {
	case <-wanted:
		return true
	case <-ctx.Done():
		return false
	}
}

// Begin is the first message of a conversation: all that the host has, and what it knows already.
func (k *Keeper) Begin() *controllerv1.FollowSegmentsRequest {
	self := k.Self()
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.asked)
	r := k.own.Whole(self, &k.known)
	hello := &controllerv1.SegmentHello{Have: wire.Have(k.known.Have()), Vlans: true}
	return &controllerv1.FollowSegmentsRequest{Hello: hello, Report: wire.Report(&r)}
}

// Changed has a value when there may be something to say.
func (k *Keeper) Changed() <-chan struct{} { return k.changed }

// Say is what there is to say; nil for nothing.
func (k *Keeper) Say() *controllerv1.FollowSegmentsRequest {
	self := k.Self()
	k.mu.Lock()
	defer k.mu.Unlock()
	for vni := range k.again {
		k.own.Again(vni)
	}
	clear(k.again)
	r, ok := k.own.Changes(self, &k.known)
	if !ok {
		return nil
	}
	return &controllerv1.FollowSegmentsRequest{Report: wire.Report(&r)}
}

// againAfter is when a segment is said once more that a controller refused: the definition that gives it to the host
// may have come by another controller.
const againAfter = time.Second

// Heard takes in what the controller says, and returns what the host answers; nil for nothing.
func (k *Keeper) Heard(m *controllerv1.FollowSegmentsResponse) (*controllerv1.FollowSegmentsRequest, error) {
	updates := make([]*span.Update, len(m.GetUpdates()))
	for i, one := range m.GetUpdates() {
		var err error
		if updates[i], err = wire.ReadUpdate(one); err != nil {
			return nil, err
		}
	}
	self := k.Self()
	k.mu.Lock()
	out := &controllerv1.FollowSegmentsRequest{}
	for _, vni := range m.GetTell() {
		out.Known = append(out.Known, wire.Update(k.known.All(span.VNI(vni))))
	}
	for _, u := range updates {
		k.touch(u)
		k.own.Confirm(self, u)
		if u.Whole {
			delete(k.asked, u.VNI)
		}
		if !k.known.Apply(u) && !k.asked[u.VNI] {
			k.asked[u.VNI] = true
			out.Anew = append(out.Anew, uint32(u.VNI))
		}
	}
	if m.GetCurrent() && !k.heard {
		k.heard, k.since, k.members, k.blank = true, time.Now(), true, false
	}
	k.stale = k.stale || len(updates) > 0
	tell := len(updates) > 0 || m.GetCurrent()
	k.mu.Unlock()
	if refused := m.GetRefused(); len(refused) > 0 {
		k.refused(refused)
	}
	if n := m.GetItems(); n > 0 {
		k.Log.Error("the controllers take no more locations of this host: other hosts flood frames to them",
			"locations", n)
	}
	if tell {
		k.Options.Changed()
	}
	if len(out.GetKnown())+len(out.GetAnew()) == 0 {
		return nil, nil
	}
	return out, nil
}

func (k *Keeper) refused(list []uint32) {
	k.Log.Warn("the controller's definition does not give this host these overlay segments: they are said again",
		"vnis", list)
	time.AfterFunc(againAfter, func() {
		k.mu.Lock()
		for _, vni := range list {
			k.again[span.VNI(vni)] = true
		}
		k.mu.Unlock()
		k.poke()
	})
}

// End ends a conversation.
func (k *Keeper) End() {
	k.mu.Lock()
	k.own.End()
	was := k.heard
	k.heard = false
	if was {
		k.since, k.members = time.Now(), true
	}
	k.mu.Unlock()
	if was {
		k.Options.Changed()
	}
}

// Hears reports whether a controller answers that has said all, and since when that is so.
func (k *Keeper) Hears() (heard bool, since time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.heard, k.since
}

// Blank reports whether the keeper has nothing to go by: what it knew is not on disk, and no controller has answered
// since. Then what the kernel's tables have is better.
func (k *Keeper) Blank() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.blank
}
