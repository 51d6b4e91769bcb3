package access

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"

	"connectrpc.com/connect/v2"

	"heddle/internal/identity"
	"heddle/internal/platform/access/roles"
	"heddle/internal/platform/pki"
)

// asks is a call of somebody with that token and role.
func asks(t *testing.T, token string, role roles.Role) context.Context {
	return with(t.Context(), Caller{Name: token, Token: &pki.APIRecord{ID: identity.TokenID(token)},
		Access: roles.NewAccess(roles.Grant{Role: role})})
}

// waits takes a turn in the background, and says when that waits.
func waits(t *testing.T, turns *Turns, ctx context.Context, then func(leave func(), err error)) {
	t.Helper()
	n := turns.Waiting()
	go func() { then(turns.Take(ctx)) }()
	for turns.Waiting() == n {
		runtime.Gosched()
	}
}

// One caller after the other has a turn, however much one of them asks; an admin does not wait for others.
func TestS189_OneCallerAfterTheOtherHasATurn(t *testing.T) {
	turns := &Turns{}
	first, err := turns.Take(asks(t, "busy", roles.Viewer))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var order []string
	var all sync.WaitGroup
	for _, who := range []string{"busy", "busy", "busy", "calm", "other", "calm"} {
		all.Add(1)
		waits(t, turns, asks(t, who, roles.Viewer), func(leave func(), err error) {
			defer all.Done()
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, who)
			mu.Unlock()
			leave()
		})
	}
	for _, ctx := range []context.Context{asks(t, "admin", roles.Admin), t.Context()} {
		leave, err := turns.Take(ctx) // while the others wait
		if err != nil {
			t.Fatal(err)
		}
		leave()
	}
	first()
	first() // leaves once
	all.Wait()
	if want := []string{"busy", "calm", "other", "busy", "calm", "busy"}; !slices.Equal(order, want) {
		t.Errorf("turns: %v, want %v", order, want)
	}
}

// Who goes away has no turn, and those behind have theirs.
func TestS189_WhoGoesAwayLosesTheTurn(t *testing.T) {
	turns := &Turns{}
	first, err := turns.Take(asks(t, "a", roles.Viewer))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(asks(t, "b", roles.Viewer))
	gone := make(chan error)
	waits(t, turns, ctx, func(_ func(), err error) { gone <- err })
	next := make(chan func())
	waits(t, turns, asks(t, "b", roles.Viewer), func(leave func(), _ error) { next <- leave })
	cancel()
	if err := <-gone; connect.CodeOf(err) != connect.CodeCanceled || errors.Is(err, context.Canceled) {
		t.Errorf("who has gone: %v", err)
	}
	first()
	(<-next)()
	if leave, err := turns.Take(asks(t, "a", roles.Viewer)); err != nil || turns.Waiting() != 0 {
		t.Errorf("%d wait, %v", turns.Waiting(), err)
	} else {
		leave()
	}
}

// So many questions of one caller wait and no more, and another caller's wait all the same.
func TestS189_OneCallersQuestionsWaitWithinABound(t *testing.T) {
	turns := &Turns{}
	first, err := turns.Take(asks(t, "a", roles.Viewer))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, mostWaiting+1)
	wait := func(who string) {
		waits(t, turns, asks(t, who, roles.Viewer), func(leave func(), err error) {
			if err == nil {
				leave()
			}
			ended <- err
		})
	}
	for range mostWaiting {
		wait("a")
	}
	if _, err := turns.Take(asks(t, "a", roles.Viewer)); connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Errorf("one more: %v", err)
	}
	wait("b")
	first()
	for range mostWaiting + 1 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
