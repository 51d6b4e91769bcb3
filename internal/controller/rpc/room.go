package rpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/api"
	"heddle/internal/platform/health"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/peers/members"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
)

// Etcd ends where it can't write, and whoever proposes a change has all members write it. So a controller asks the
// others whether they have room, and takes no change that a majority would not bear.

// roomTime is how often the others are asked: in less than that nobody writes what is kept free on every disk.
const roomTime = 2 * time.Second

// noRoom says why this controller's disk takes no change; "" where it does.
func (s Self) noRoom() string {
	if s.Etcd == (store.Etcd{}) || s.Dir == "" {
		return ""
	}
	var full *store.NoRoom
	if errors.As(store.Room(s.Dir), &full) {
		return fmt.Sprintf("the file system of %s has %d MiB left, and etcd needs %d MiB", full.Dir, full.Free>>20,
			store.LeastFree>>20)
	}
	return ""
}

// WatchRoom has changes held back while the majority has no room for them, until ctx ends.
func (s Front) WatchRoom(ctx context.Context, hold func(*store.NoRoomElsewhere)) {
	if s.Self.Etcd == (store.Etcd{}) {
		return
	}
	held := false
	for {
		select {
		case <-time.After(roomTime):
		case <-ctx.Done():
			return
		}
		why, known := s.roomElsewhere(ctx)
		if !known {
			continue
		}
		hold(why)
		switch {
		case why != nil && !held:
			s.Log.Warn("no changes are taken", "why", why)
		case why == nil && held:
			s.Log.Info("the majority of the controllers has room again: changes are taken")
		}
		held = why != nil
	}
}

// roomElsewhere is why the others would not bear a change; nil where they would. known is false where that can't be
// found out now, as while a leader is elected: what was found before stands until then.
func (s Front) roomElsewhere(ctx context.Context) (why *store.NoRoomElsewhere, known bool) {
	if len(s.Others()) == 0 {
		return nil, true
	}
	answers := s.Standings(ctx, true)
	full := false
	for _, a := range answers {
		full = full || a.Got.GetNoRoom() != ""
	}
	if !full {
		return nil, true
	}
	st, err := s.Members.Status(ctx)
	if err != nil {
		return nil, false
	}
	return tooFull(answers, votersOf(st)), true
}

// votersOf are the controllers with a vote, by id.
func votersOf(st store.Status) map[string]bool {
	voters := map[string]bool{}
	for _, m := range st.Members {
		if !m.Learner {
			voters[m.Name] = true
		}
	}
	return voters
}

// tooFull says which of the others have no room where, without them and those that do not answer, there is no majority.
func tooFull(answers []peers.Answer[*controllerv1.GetControllerResponse],
	voters map[string]bool) *store.NoRoomElsewhere {
	why := &store.NoRoomElsewhere{}
	for _, a := range answers {
		name := "controller " + peers.NameOf(a.Of)
		switch {
		case !voters[a.Of.ID]:
		case a.Err != nil:
			why.Away = append(why.Away, name)
		case a.Got.GetNoRoom() != "":
			why.Members = append(why.Members, name+": "+a.Got.GetNoRoom())
		}
	}
	able := len(voters) - len(why.Away) - len(why.Members)
	if len(why.Members) == 0 || able >= len(voters)/2+1 {
		return nil
	}
	return why
}

// otherControllers is what is found of the other controllers.
func (s Front) otherControllers(ctx context.Context) (found []api.HealthFinding) {
	own := s.standing(ctx, true)
	for _, a := range s.Standings(ctx, true) {
		what := health.Other{Name: peers.NameOf(a.Of), Apart: members.Apart(own, a.Got), NoRoom: a.Got.GetNoRoom()}
		if a.Err != nil {
			_, what.Away = rpcerrors.CodeAndText(a.Err)
		}
		found = append(found, health.Others(what)...)
	}
	return found
}
