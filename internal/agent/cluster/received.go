package cluster

import (
	"fmt"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/state"
	"heddle/internal/slice"
)

// received is the content that a controller has sent, ahead of what is active. It is for one goroutine.
type received struct {
	set      *slice.Set
	epoch    int64
	revision int64
}

func from(s *state.Slice) *received {
	r := &received{set: s.Set()}
	if s != nil {
		r.epoch, r.revision = s.Epoch, s.Revision
	}
	return r
}

// update makes the content that of the update's version. On an error the content is what it was, and the whole content
// has to be asked for.
func (r *received) update(u *controllerv1.SliceUpdate) error {
	next := &slice.Set{}
	if !u.GetWhole() {
		if have := r.set.Hash(); string(u.GetFrom()) != string(have[:]) {
			return fmt.Errorf("the controller's update is for content %x, this host has %s", u.GetFrom(), have)
		}
		next = r.set.Clone()
	}
	var c slice.Change
	for _, o := range u.GetPut() {
		c.Put = append(c.Put, slice.Object{Key: slice.Key{Kind: slice.Kind(o.GetKind()), Name: o.GetName()},
			Doc: o.GetDoc()})
	}
	for _, k := range u.GetRemoved() {
		c.Removed = append(c.Removed, slice.Key{Kind: slice.Kind(k.GetKind()), Name: k.GetName()})
	}
	next.Apply(c)
	v := u.GetVersion()
	if got := next.Hash(); string(v.GetHash()) != string(got[:]) {
		return fmt.Errorf("the controller's update makes content %s, it should be %x", got, v.GetHash())
	}
	r.set, r.epoch, r.revision = next, v.GetEpoch(), v.GetRevision()
	return nil
}

// current takes in that the content is that of another version too, unchanged.
func (r *received) current(v *controllerv1.SliceVersion) error {
	if have := r.set.Hash(); string(v.GetHash()) != string(have[:]) {
		return fmt.Errorf("the controller says that this host has content %x, it has %s", v.GetHash(), have)
	}
	r.epoch, r.revision = v.GetEpoch(), v.GetRevision()
	return nil
}

// older is an error for a version from before a restore of the controllers' state that this host knows of: a controller
// that has it was left over, and another one has what counts.
// A message without a version says nothing about the state, such as that the host renews its certificate first.
func (r *received) older(v *controllerv1.SliceVersion) error {
	if v == nil || v.GetEpoch() >= r.epoch {
		return nil
	}
	return fmt.Errorf("this controller has the state of epoch %d, and the host one of epoch %d, which was restored "+
		"since: the controller is left over from before (heddle-controller list), or the host leaves the cluster and "+
		"joins again", v.GetEpoch(), r.epoch)
}

// ready is a version to be activated, with its hash: that of all objects is much work beside a change of one.
type ready struct {
	*state.Slice
	hash slice.Hash
}

func (r ready) version() *controllerv1.SliceVersion {
	return &controllerv1.SliceVersion{Epoch: r.Epoch, Revision: r.Revision, Hash: r.hash[:]}
}

// ready is the content as the agent keeps it.
func (r *received) ready() ready {
	s := &state.Slice{Epoch: r.epoch, Revision: r.revision}
	for o := range r.set.All() {
		s.Objects = append(s.Objects, o)
	}
	return ready{s, r.set.Hash()}
}

// version is that of the content.
func version(s *state.Slice) *controllerv1.SliceVersion {
	if s == nil {
		return nil
	}
	hash := s.Set().Hash()
	return &controllerv1.SliceVersion{Epoch: s.Epoch, Revision: s.Revision, Hash: hash[:]}
}
