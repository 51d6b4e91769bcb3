package cli

import (
	"testing"

	"heddle/internal/agent"
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
		{"somebody is connected", false, connected, ExitConnected},
		{"agreed to", true, connected, ExitOK},
		{"nobody is connected", false, &agent.Removal{}, ExitOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			status := ExitOK
			if err := (&downing{yes: c.yes}).connected(c.what); err != nil {
				status = exitStatus(err)
			}
			if status != c.status {
				t.Errorf("status %d, want %d", status, c.status)
			}
		})
	}
}
