package fleet

import (
	"testing"

	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit/realhost"
)

// host is a host with the real program, and what tests of fleets ask it.
type host struct{ *realhost.Host }

// newHost prepares a host without an agent.
func newHost(t *testing.T, ns *netns.NS) *host {
	t.Helper()
	return &host{realhost.New(t, ns)}
}
