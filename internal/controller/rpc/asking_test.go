package rpc

import (
	"context"
	"testing"

	"connectrpc.com/connect/v2"
)

// Controllers that are asked at the same time share nothing of a call within which they are asked: one that was written
// by two answers ended the program.
func TestEachControllerThatIsAskedHasACallOfItsOwn(t *testing.T) {
	c := newController(t)
	controllerOn(t, "c2", c.authority, c.disk)
	controllerOn(t, "c3", c.authority, c.disk)
	c.await("both others are known", func() bool { return len(c.others()) == 2 })
	ctx, outer := connect.NewClientContext(t.Context())
	seen := map[*connect.CallInfo]bool{outer: true}
	for _, a := range askOthers(ctx, c.roster, patience, func(ctx context.Context, _ *link) (*connect.CallInfo, error) {
		info, _ := connect.CallInfoForClientContext(ctx)
		return info, nil
	}) {
		if a.err != nil || a.got == nil || seen[a.got] {
			t.Errorf("%s is asked within the call %p, %v", a.of.Name, a.got, a.err)
		}
		seen[a.got] = true
	}
	if len(seen) != 3 {
		t.Errorf("%d calls, want 3", len(seen))
	}
}
