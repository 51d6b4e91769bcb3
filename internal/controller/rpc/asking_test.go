package rpc

import (
	"context"
	"testing"

	"connectrpc.com/connect/v2"

	"heddle/internal/platform/peers"
)

// Controllers that are asked at the same time share nothing of a call within which they are asked: one that was written
// by two answers ended the program.
func TestEachControllerThatIsAskedHasACallOfItsOwn(t *testing.T) {
	c := newController(t)
	controllerOn(t, "c2", c.authority, c.disk)
	controllerOn(t, "c3", c.authority, c.disk)
	c.await("both others are known", func() bool { return len(c.Others()) == 2 })
	ctx, outer := connect.NewClientContext(t.Context())
	seen := map[*connect.CallInfo]bool{outer: true}
	for _, a := range peers.AskOthers(ctx, c.Roster, patience, func(ctx context.Context, _ *peers.Link) (
		*connect.CallInfo, error) {
		info, _ := connect.CallInfoForClientContext(ctx)
		return info, nil
	}) {
		if a.Err != nil || a.Got == nil || seen[a.Got] {
			t.Errorf("%s is asked within the call %p, %v", a.Of.Name, a.Got, a.Err)
		}
		seen[a.Got] = true
	}
	if len(seen) != 3 {
		t.Errorf("%d calls, want 3", len(seen))
	}
}
