package rpc

import (
	"cmp"
	"context"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/addresses"
	"heddle/internal/controller/inventory"
	"heddle/internal/controller/pipeline"
	"heddle/internal/controller/rollout"
	"heddle/internal/controller/rollout/staged"
	"heddle/internal/platform/peers"
)

// takeBack takes a rollout's change back, for somebody or, for "", by itself.
func (p people) takeBack(ctx context.Context, id, who, message string, force bool) error {
	q := &pipeline.Request{ApplyDefinitionRequest: &controllerv1.ApplyDefinitionRequest{File: "rollout " + id,
		Force: force, Message: cmp.Or(message, "rollout "+id+" is taken back")},
		Source: staged.TakenBack{Record: recordOf(p.Server).Record, Rollout: id}, TakesBack: id, TakesBackFor: who}
	_, err := p.applied(ctx, q)
	return err
}

// inStages is what changes in stages need of this controller.
func (p people) inStages() staged.Controller {
	f := withheld{p.fleet}
	return staged.Controller{Record: recordOf(p.Server).Record, Epoch: p.Epoch, Foretell: f.foretell,
		Concerned: f.concerned, KnowsNone: p.knowsNoStages, CatchUp: p.catchUp, Making: rolloutsOf(p.Server).Making}
}

// knowsNoStages names another controller that is of a version which knows no changes in stages; "" for none.
func (p people) knowsNoStages(ctx context.Context) string {
	for _, a := range peers.AskOthers(ctx, p.Roster, peers.AskTime, func(ctx context.Context, k *peers.Link) (
		*controllerv1.ReadVitalsHereResponse, error) {
		return k.ReadVitalsHere(ctx, &controllerv1.ReadVitalsHereRequest{})
	}) {
		if connect.CodeOf(a.Err) == connect.CodeUnimplemented && a.Err != nil {
			return peers.NameOf(a.Of)
		}
	}
	return ""
}

// concerned are the hosts that are handed something else by one definition than by another, by name.
func (f withheld) concerned(was, after *inventory.Inventory, g *addresses.Grant) map[string]rollout.Member {
	f.mu.Lock()
	defer f.mu.Unlock()
	hosts := map[string]rollout.Member{}
	for _, h := range f.hosts {
		if f.differs(h, was, after, g) {
			hosts[h.doc.Name] = rollout.Member{ID: h.id, Labels: after.Labels(h.doc.Name, h.doc.Labels)}
		}
	}
	return hosts
}
