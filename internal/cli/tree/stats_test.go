package tree

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/api"
	"heddle/internal/cli"
)

// reading returns the counters of two ports of one group and of an uplink.
func reading(n uint64, at int64) []api.Stats {
	one := func(name, group string, n uint64) api.Stats {
		return api.Stats{Switch: "lab", Name: name, PortGroup: group, Uplink: group == "", ReadAt: at,
			Counters: []api.Counter{
				{Name: "packetsInUnicast", Value: n}, {Name: "bytesInUnicast", Value: 1000 * n},
				{Name: "packetsInDropped", Value: n / 10}}}
	}
	return []api.Stats{one("uplink1", "", n), one("vm1", "web", 2*n), one("vm2", "web", 3*n)}
}

func TestS80_StatsSumByPortGroupAndSwitch(t *testing.T) {
	s := &standIn{stats: reading(100, 1e9)}
	c := newConsole(t, s)
	for by, want := range map[string]string{
		"port-group": "SWITCH  PORT GROUP  PKTS IN  BYTES IN  PKTS OUT  BYTES OUT  IN DROPS  OUT DROPS  FILTERED  " +
			"LOST\n" +
			"lab     (uplinks)       100    100000         0          0        10          0         0     0\n" +
			"lab     web             500    500000         0          0        50          0         0     0\n",
		"switch": "SWITCH  PORTS  PKTS IN  BYTES IN  PKTS OUT  BYTES OUT  IN DROPS  OUT DROPS  FILTERED  LOST\n" +
			"lab     3          600    600000         0          0        60          0         0     0\n",
	} {
		t.Run(by, func(t *testing.T) {
			if d := cmp.Diff(want, c.must("stats", "--by", by)); d != "" {
				t.Errorf("by %s (-want +got):\n%s", by, d)
			}
		})
	}
}

func TestStatsShowsRatesBetweenTwoReadings(t *testing.T) {
	s := &standIn{readings: [][]api.Stats{reading(100, 1e9), reading(300, 3e9)}}
	got := newConsole(t, s).must("stats", "--rates", "--interval", "1ns")
	want := "SWITCH  PORT     IN PKT/S  IN BIT/S  OUT PKT/S  OUT BIT/S  IN DROP/S  OUT DROP/S  FILTERED/S  LOST/S\n" +
		"lab     uplink1       100      800k          0          0         10           0           0       0\n" +
		"lab     vm1           200      1.6M          0          0         20           0           0       0\n" +
		"lab     vm2           300      2.4M          0          0         30           0           0       0\n"
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestS94_StatsCheckFailsWhenTheAccountsAreBroken(t *testing.T) {
	s := &standIn{accounts: []api.PortAccount{{Switch: "lab", Name: "vm1", State: "exact", Received: 9, Delivered: 9},
		{Switch: "lab", Name: "vm2", State: "open", Received: 12, Delivered: 9, Most: 3}}}
	c := newConsole(t, s)
	want := "SWITCH  PORT  RECEIVED  DELIVERED  DROPPED  WITHOUT A FATE  ACCOUNTS\n" +
		"lab     vm2         12          9        0          0 to 3  open\n" +
		"1 of 2 ports and uplinks were at rest, and every frame received has its fate\n" +
		"of the others, which had traffic, no more than 3 frames are in doubt at one of them\n"
	if d := cmp.Diff(want, c.must("stats", "--check")); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	s.accounts = append(s.accounts, api.PortAccount{Switch: "lab", Name: "vm3", State: "broken", Received: 9,
		Delivered: 2, Least: 7, Most: 7, Fault: "7 frames"})
	out, errs, status := c.run("stats", "--check")
	if status != cli.ExitFailure || !strings.Contains(out, "broken: 7 frames") ||
		!strings.Contains(errs, "1 of 3 ports and uplinks do not add up") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
}

func TestStatsRefusesWhatMakesNoSense(t *testing.T) {
	c := newConsole(t, furnished())
	for _, args := range [][]string{{"--by", "host"}, {"vm1/eth0", "--by", "switch"}, {"--check", "--rates"},
		{"vm1/eth0", "--check"}, {"--rates", "--interval", "0s"}, {"--watch", "--count", "-1"}} {
		if _, errs, status := c.run(append([]string{"stats"}, args...)...); status != cli.ExitUsage {
			t.Errorf("%v: status %d, %s", args, status, errs)
		}
	}
}
