package agentcmd

import (
	"testing"

	"heddle/internal/agent"
	"heddle/internal/cli"
)

// Scripts tell a removal that was refused from one that failed, and from a wrong command line.
func TestS182_ARemovalThatEndsAConnectionHasAStatusOfItsOwn(t *testing.T) {
	connected := &agent.Removal{Connected: []string{"192.0.2.9:40000"}}
	for _, c := range []struct {
		name   string
		yes    bool
		what   *agent.Removal
		status int
	}{
		{"somebody is connected", false, connected, cli.ExitConnected},
		{"agreed to", true, connected, cli.ExitOK},
		{"nobody is connected", false, &agent.Removal{}, cli.ExitOK},
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
