package staged

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/rollout/driving"
	"heddle/internal/controller/rollout/kept"
)

// Message is a rollout for who asks, without its hosts.
func Message(k *kept.Rollout, now time.Time) *controllerv1.Rollout {
	out := &controllerv1.Rollout{Id: k.ID, State: string(k.State), Revision: k.Revision, Base: k.Base,
		Begun: int32(k.Begun), Wait: durationpb.New(k.Wait), Watch: durationpb.New(k.Watch), Halt: string(k.Halt),
		By: k.Order.By, Who: k.Who, Message: k.Why, Started: timestamppb.New(k.Started), Note: k.Note,
		Switches: k.Switches}
	for i, s := range k.Order.Stages {
		stage := &controllerv1.RolloutStage{Stage: s.String()}
		if i < len(k.Counts) {
			stage.Count = int32(k.Counts[i])
		}
		out.Stages = append(out.Stages, stage)
	}
	if !k.Settled.IsZero() {
		out.Settled = timestamppb.New(k.Settled)
	}
	if left, ok := k.Left(now); ok {
		out.Left = durationpb.New(left)
	}
	if !k.Ended.IsZero() {
		out.Ended = timestamppb.New(k.Ended)
	}
	for _, f := range k.Found {
		out.Found = append(out.Found, &controllerv1.RolloutFinding{Host: f.Host, What: f.What})
	}
	return out
}

// foreseen is a rollout as it begins, with its hosts; nil where there is none.
func (r *inStages) foreseen() *controllerv1.Rollout {
	if r == nil {
		return nil
	}
	out := Message(&r.Rollout, r.Started)
	for name, m := range r.hosts {
		s := out.Stages[r.Order.StageOf(m)]
		s.Hosts = append(s.Hosts, &controllerv1.RolloutHost{Name: name, State: driving.Unchanged})
	}
	SortHosts(out)
	return out
}

// SortHosts sorts the hosts of each stage, and counts them.
func SortHosts(out *controllerv1.Rollout) {
	for _, s := range out.GetStages() {
		slices.SortFunc(s.Hosts, func(a, b *controllerv1.RolloutHost) int {
			return cmp.Compare(a.GetName(), b.GetName())
		})
		s.Count = int32(len(s.GetHosts()))
	}
}
