package members

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
)

// ListControllers lists the controllers and how they stand.
func (s Service) ListControllers(ctx context.Context, _ *controllerv1.ListControllersRequest) (
	*controllerv1.ListControllersResponse, error) {
	members, err := s.Etcd.Status(ctx)
	stale := s.Roster.Confirmed(ctx)
	if err != nil && stale == "" {
		return nil, rpcerrors.OfStore(err)
	}
	own := s.Standing(ctx)
	said := map[string]peers.Answer[*controllerv1.GetControllerResponse]{s.Roster.This.ID: {Got: own}}
	for _, a := range peers.AskOthers(ctx, s.Roster, peers.AskTime, func(ctx context.Context, k *peers.Link) (
		*controllerv1.GetControllerResponse, error) {
		return k.GetController(ctx, &controllerv1.GetControllerRequest{})
	}) {
		said[a.Of.ID] = a
	}
	out := &controllerv1.ListControllersResponse{Cluster: string(s.Authority.Trust().Cluster), Epoch: s.Epoch,
		Notes: notesOf(members)}
	if stale != "" {
		out.Notes = append(out.Notes, stale)
	}
	for _, c := range s.Roster.Cluster() {
		row := Shown(c, said[c.ID], own)
		row.Self, row.Role = c.ID == s.Roster.This.ID, roleOf(c.ID, members)
		out.Controllers = append(out.Controllers, row)
	}
	return out, nil
}

// Shown is a controller as people see it, by what it said and what this one says of itself.
func Shown(c peers.Controller, said peers.Answer[*controllerv1.GetControllerResponse],
	own *controllerv1.GetControllerResponse) *controllerv1.Controller {
	out := &controllerv1.Controller{Name: peers.NameOf(c), Id: c.ID, Address: c.Address, Peer: c.Peer,
		Version: c.Version,
		State:   "up", Hosts: said.Got.GetHosts(), Lag: said.Got.GetLag()}
	switch {
	case said.Err != nil:
		out.State, out.Problem = "unreachable", said.Err.Error()
		var by *connect.Error
		if errors.As(said.Err, &by) {
			out.Problem = by.Message()
		}
	case Apart(own, said.Got) != "":
		out.State, out.Problem = "apart", Apart(own, said.Got)
	case said.Got.GetStale() != "":
		out.State, out.Problem = "stale", said.Got.GetStale()
	case said.Got.GetNoRoom() != "":
		out.Problem = said.Got.GetNoRoom()
	}
	return out
}

// roleOf is what a controller is in etcd.
func roleOf(id string, st store.Status) string {
	if !st.Embedded {
		return "none"
	}
	for _, m := range st.Members {
		switch {
		case m.Name != id:
		case m.Learner:
			return "learner"
		case m.Leader:
			return "leader"
		default:
			return "voter"
		}
	}
	return "none"
}

// notesOf says what is to be known of the members as a whole.
func notesOf(st store.Status) (notes []string) {
	voters := 0
	for _, m := range st.Members {
		if !m.Learner {
			voters++
		}
	}
	if st.Embedded && voters > 0 && voters%2 == 0 {
		notes = append(notes, evenText(voters))
	}
	return notes
}

// evenText warns about an even number of controllers.
func evenText(n int) string {
	return fmt.Sprintf("%d controllers stand the loss of %d, as %d do: add one, or take one out", n, (n-1)/2, n-1)
}
