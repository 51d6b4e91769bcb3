package chaos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"heddle/internal/api"
	"heddle/internal/test/testkit/realhost"
)

// Tokens are changes that cost the hosts nothing, so that controllers are asked for many: each of these callers at each
// controller makes or revokes one at each interval, which are 50 a second with three controllers.
const (
	tokenCallers = 12
	tokenEvery   = 720 * time.Millisecond
	// mostTokens is how many a caller has at a time.
	mostTokens = 3
)

// tokens are what is known of the tokens that were made, by their names.
type tokens struct {
	mu    sync.Mutex
	known map[string]tokenFate
	// asked is how many changes were asked for, done how many of them were made.
	asked, done int
}

// tokenFate is whether a token is there.
type tokenFate string

const (
	tokenThere   tokenFate = "there"
	tokenGone    tokenFate = "gone"
	tokenPerhaps tokenFate = "perhaps" // a call about it was not answered
)

// say takes in what became of a change.
func (k *tokens) say(name string, fate tokenFate, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	if err == nil {
		k.done++
	}
	k.known[name] = fate
}

// mint makes and revokes tokens at a controller until ctx ends. A call that was begun is waited for.
func (r *rig) mint(ctx context.Context, caller int, c *realhost.Controller) {
	var mine []api.NewToken
	names := map[string]string{} // by id
	for n := 0; wait(ctx, tokenEvery); n++ {
		one, cancel := context.WithTimeout(context.Background(), callTime)
		if len(mine) < mostTokens {
			name := fmt.Sprintf("%s-%d-%d", c.Name, caller, n)
			made, err := c.CreateToken(one, api.TokenTerms{Name: name, Role: "viewer"})
			if err == nil {
				mine, names[made.ID] = append(mine, *made), name
				r.tokens.say(name, tokenThere, nil)
			} else {
				r.failed(fmt.Errorf("make a token: %w", err))
				r.tokens.say(name, tokenPerhaps, err)
			}
		} else {
			id := mine[0].ID
			mine = mine[1:]
			r.revokes(one, c, id, names[id])
		}
		cancel()
	}
}

// revokes revokes a token that is known to be there.
func (r *rig) revokes(ctx context.Context, c *realhost.Controller, id, name string) {
	err := c.Fleet.RevokeToken(ctx, id)
	var known *api.Error
	switch {
	case err == nil:
		r.tokens.say(name, tokenGone, nil)
	case errors.As(err, &known) && known.Kind == api.NotFound:
		r.t.Errorf("%s has lost token %s (%s): %v", c.Name, id, name, err)
	default:
		r.failed(fmt.Errorf("revoke a token: %w", err))
		r.tokens.say(name, tokenPerhaps, err)
	}
}

// tokensAre waits until every controller has the tokens of which it was said that they were made, and none of those
// that were revoked.
func (r *rig) tokensAre() {
	r.t.Helper()
	wrong := ""
	for _, c := range r.controllers {
		is := func() bool {
			wrong = r.wrongTokens(c)
			return wrong == ""
		}
		for end := time.Now().Add(checkTime); !is(); time.Sleep(realhost.Poll) {
			if time.Now().After(end) {
				r.t.Errorf("%s: %s", c.Name, wrong)
				break
			}
		}
	}
}

// wrongTokens is what a controller lists wrongly, "" for nothing.
func (r *rig) wrongTokens(c *realhost.Controller) string {
	list, err := c.Tokens(r.t.Context())
	if err != nil {
		return err.Error()
	}
	there := map[string]bool{}
	for _, t := range list {
		there[t.Name] = true
	}
	r.tokens.mu.Lock()
	defer r.tokens.mu.Unlock()
	var wrong []string
	for name, fate := range r.tokens.known {
		switch {
		case fate == tokenThere && !there[name]:
			wrong = append(wrong, "token "+name+" was made, and is not there")
		case fate == tokenGone && there[name]:
			wrong = append(wrong, "token "+name+" was revoked, and is there")
		}
	}
	return strings.Join(wrong, "; ")
}
