package rpc

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/definition"
	"heddle/internal/platform/store"
)

// Whichever write of a change fails that ends static ports: where the change counts, its ports are removed by the
// controllers, and a port group of the same name that is defined again has none of them.
func TestS142_PortsOfAPortGroupThatIsGoneAreRemoved(t *testing.T) {
	for _, how := range []wayToFail{before, after, never} {
		t.Run(string(how), func(t *testing.T) {
			remove := &controllerv1.ApplyDefinitionRequest{Content: large(0, 1, 10), Force: true}
			made := writesOf(t, outcome{prepare: withABoundPort, call: func(ctx context.Context, p people) error {
				_, err := p.ApplyDefinition(ctx, remove)
				return err
			}})
			for at := 1; at <= made; at++ {
				c := newController(t)
				withABoundPort(c)
				p, _ := c.failing(at, how)
				out, err := p.ApplyDefinition(t.Context(), remove)
				if e := c.Store.Sync(t.Context()); e != nil {
					t.Fatal(e)
				}
				if defines("dvs/fixed")(c) {
					continue
				}
				noted := strings.Contains(strings.Join(out.GetNotes(), " "), "static ports")
				if ports, _ := countPorts(c, "dvs/fixed"); err == nil && ports > 0 && !noted {
					t.Errorf("write %d: %d ports are left; the notes are %q", at, ports, out.GetNotes())
				}
				if at%2 == 0 { // the next change comes before any controller has gone on
					c.define(staticText)
					if n := len(boundPorts(c.Store)); n != 0 {
						t.Errorf("write %d: %d ports of the port group that was defined again are bound", at, n)
					}
				}
				following, stop := context.WithCancel(t.Context())
				defer stop()
				go portsOf(c.Server).Follow(following, 10*time.Millisecond)
				c.await("the work is done", func() bool {
					_, open := c.Store.Get(definition.PortWorkKey())
					return !open
				})
				want := 0
				if at%2 == 0 {
					want = 2
				}
				if ports, bound := countPorts(c, "dvs/fixed"); ports != want || bound != 0 {
					t.Errorf("write %d: %d static ports, %d bound, want %d and none", at, ports, bound, want)
				}
			}
		})
	}
}

// A change is refused as a whole by whose transaction a port is bound that it would end.
func TestS142_APortThatIsBoundMeanwhileIsNotEnded(t *testing.T) {
	for name, text := range map[string]string{"one transaction": large(0, 1, 10), "many": large(0, 300, 10)} {
		t.Run(name, func(t *testing.T) {
			c := newController(t)
			c.define(staticText)
			late := *c.Server
			late.Store = &claiming{Store: c.Store}
			_, err := people{&late}.ApplyDefinition(t.Context(), &controllerv1.ApplyDefinitionRequest{Content: text})
			if err == nil || !strings.Contains(err.Error(), "dvs/fixed") {
				t.Errorf("error %v, want that ports of dvs/fixed are in use", err)
			}
			if !defines("dvs/fixed")(c) || len(boundPorts(c.Store)) != 1 {
				t.Errorf("the port group is there: %v, %d ports are bound", defines("dvs/fixed")(c),
					len(boundPorts(c.Store)))
			}
		})
	}
}

// claiming is a store in which a port is bound just before a change of the definition is written.
type claiming struct {
	Store
	claimed bool
}

func (l *claiming) Write(ctx context.Context, list []store.Change) (int64, error) {
	if !l.claimed && slices.ContainsFunc(list, func(c store.Change) bool { return c.Key == definition.Key() }) {
		l.claimed = true
		if _, err := l.Store.Claim(ctx, aClaim()); err != nil {
			return 0, err
		}
	}
	return l.Store.Write(ctx, list)
}
