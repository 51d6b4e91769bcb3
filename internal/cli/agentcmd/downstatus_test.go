package agentcmd

import (
	"testing"

	"heddle/internal/agent/removal"
	"heddle/internal/cli"
)

// Scripts tell a removal that was refused from one that failed, and from a wrong command line.
func TestS182_ARemovalThatEndsAConnectionHasAStatusOfItsOwn(t *testing.T) {
	connected := &removal.Removal{Connected: []string{"192.0.2.9:40000"}}
	for _, c := range []struct {
		name   string
		yes    bool
		what   *removal.Removal
		status int
	}{
		{"somebody is connected", false, connected, cli.ExitConnected},
		{"agreed to", true, connected, cli.ExitOK},
		{"nobody is connected", false, &removal.Removal{}, cli.ExitOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			status := cli.ExitOK
			if err := (&downing{yes: c.yes}).connected(c.what); err != nil {
				status = cli.ExitStatus(err)
			}
			if status != c.status {
				t.Errorf("status %d, want %d", status, c.status)
			}
		})
	}
}
