package cmd

import (
	"strings"
	"testing"

	"heddle/internal/api"
)

// TestS109_TheSummaryOfHealthSpeaksOfWhatTakesPart: of uplinks, of tunnels, or of both.
func TestS109_TheSummaryOfHealthSpeaksOfWhatTakesPart(t *testing.T) {
	const paths, ends = "2 uplinks: 2 of 3 paths pass, 1 are not known yet", "tunnels: 4 of 6 pairs of endpoints pass"
	for _, c := range []struct {
		name string
		host api.HostHealth
		want []string
	}{
		{"nothing", api.HostHealth{}, []string{nobodyProbes}},
		{"one uplink, alone", api.HostHealth{Alone: true, Uplinks: 1}, []string{"this host has no controller, and no " +
			"two uplinks that could probe each other: nothing is known"}},
		{"uplinks alone", api.HostHealth{Alone: true, Uplinks: 2, Paths: 3, Passing: 2, Waiting: 1},
			[]string{paths, "this host has no controller: of uplinks, only its own probe one another"}},
		{"tunnels alone", api.HostHealth{Alone: true, Tunnels: 6, TunnelsPassing: 4},
			[]string{ends, "this host has no controller: it knows what its own probes have found"}},
		{"both, with forged frames", api.HostHealth{Uplinks: 2, Paths: 3, Passing: 2, Waiting: 1, Tunnels: 6,
			TunnelsPassing: 4, Forged: 3}, []string{paths, ends,
			"what all hosts have found: heddle health --controller ADDRESS",
			"3 frames pretended to be probes: no host of the cluster signed them"}},
	} {
		t.Run("host: "+c.name, func(t *testing.T) { sameLines(t, hostHealthLines(&c.host), c.want) })
	}
	for _, c := range []struct {
		name string
		all  api.NetworkHealth
		want []string
	}{
		{"tunnels", api.NetworkHealth{Hosts: 3, Tunnels: 6, TunnelsPassing: 4}, []string{"3 hosts", ends}},
		{"uplinks", api.NetworkHealth{Hosts: 1, Uplinks: 2, VLANs: 1, Paths: 1, Passing: 1, Lonely: 2},
			[]string{"1 host with 2 uplinks, in 1 VLAN: 1 of 1 path pass; 2 have one uplink alone, so that nobody " +
				"can tell"}},
	} {
		t.Run("all hosts: "+c.name, func(t *testing.T) { sameLines(t, networkLines(&c.all), c.want) })
	}
}

func sameLines(t *testing.T, got, want []string) {
	t.Helper()
	if a, b := strings.Join(got, "\n"), strings.Join(want, "\n"); a != b {
		t.Errorf("said:\n%s\nnot:\n%s", a, b)
	}
}
