package rpc

import (
	"context"
	"fmt"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/definition"
	"heddle/internal/platform/access"
	"heddle/internal/platform/rpcerrors"
)

// portsOf makes static ports what the definition says.
func portsOf(s *Server) definition.PortKeeper {
	return definition.PortKeeper{Store: s.Store, Log: s.Log}
}

// clearPorts removes ports that an earlier change has left of port groups that are gone, before the next one.
func clearPorts(ctx context.Context, s *Server) error {
	if _, left := s.Store.Get(definition.PortWorkKey()); !left {
		return nil
	}
	if err := portsOf(s).Clear(ctx); err != nil {
		return rpcerrors.OfStore(fmt.Errorf("remove static ports that an earlier change has left: %w", err))
	}
	return rpcerrors.OfStore(s.catchUp(ctx))
}

// askForPorts writes what is to be done for static ports where the definition stays as it is.
func askForPorts(ctx context.Context, s *Server, w definition.Ports) error {
	changes, err := portsOf(s).Changes(w)
	if err != nil || len(changes) == 0 {
		return err
	}
	_, err = s.Store.Write(ctx, changes)
	return rpcerrors.OfStore(err)
}

// settlePorts does what a change that counts has left to do for static ports. What fails is a note: the change counts,
// and controllers try it again.
func settlePorts(ctx context.Context, s *Server, out *controllerv1.ApplyDefinitionResponse) {
	if _, left := s.Store.Get(definition.PortWorkKey()); !left {
		return
	}
	err := portsOf(s).Settle(ctx)
	if err == nil {
		return
	}
	note := fmt.Sprintf("the change counts, as revision %d, and its static ports are not all as it says: %v",
		out.GetRevision(), err)
	out.Notes = append(out.Notes, note)
	access.Note(ctx, note)
	s.Log.Warn("a change of the definition counts, and static ports are not yet as it says", "err", err)
}
