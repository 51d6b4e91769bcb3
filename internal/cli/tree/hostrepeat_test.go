package tree

import (
	"context"
	"strings"
	"testing"

	"heddle/internal/api"
)

// A join that was interrupted after the host had joined is repeated: by the same command, which asks for nothing twice.
// To another cluster, under another name or in the place of a host it is a join, and the agent decides about it.
func TestS103_AJoinIsRepeated(t *testing.T) {
	member := api.Membership{Member: true, Cluster: "abc", Name: "esx1", Connected: "c2:7411",
		Controllers: []string{"c1:7411", "c2:7411"}}
	away := member
	away.Connected = ""
	for _, c := range []struct {
		name   string
		has    api.Membership
		args   []string
		joined bool
	}{
		{"it has joined", member, []string{"c1:7411"}, false},
		{"under that name", member, []string{"c1:7411", "--name", "esx1"}, false},
		{"it is in none", api.Membership{}, []string{"c1:7411"}, true},
		{"it has no controller", away, []string{"c1:7411"}, true},
		{"another controller", member, []string{"c9:7411"}, true},
		{"another name", member, []string{"c1:7411", "--name", "esx2"}, true},
		{"in the place of a host", member, []string{"c1:7411", "--replace"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &standIn{membership: c.has}
			_, errs, status := newConsole(t, s).run(append([]string{"host", "join", "--token", "hj1.x"}, c.args...)...)
			if joined := len(s.asked) > 0; status != 0 || joined != c.joined {
				t.Errorf("status %d, it joins: %v: %s", status, joined, errs)
			}
		})
	}
}

// Who interrupts a command that changes something is told what is so now, and that it can be repeated.
func TestAnInterruptedCommandSaysWhatIsLeft(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"host", "join", "c1:7411", "--token", "hj1.x"}, {"host", "leave"},
		{"host", "join", "c1:7411", "--token", "hj1.x", "--adopt", "--yes"}} {
		_, errs, status := newConsole(t, &standIn{}).runIn(ctx, args...)
		if status == 0 || !strings.Contains(errs, "interrupted: ") || !strings.Contains(errs, "repeat the command") {
			t.Errorf("%v: status %d: %s", args, status, errs)
		}
	}
}
