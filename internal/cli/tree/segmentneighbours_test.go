package tree

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/plan"
)

func someNeighbours() *api.Neighbours {
	web := plan.SegmentOf(0, false).In(5000)
	return &api.Neighbours{Neighbours: []api.BoundAddress{
		{Switch: "dvs", VLAN: web, Address: "10.0.0.3", MAC: "02:00:00:00:00:03", Whose: api.OwnerAtPort,
			Port: "vm3/eth0", AgeSeconds: 7},
		{Switch: "dvs", VLAN: web, Address: "10.0.0.40", MAC: "02:00:00:00:00:77", Whose: api.OwnerAtEndpoint,
			Endpoint: "192.0.2.2", Contested: true, Rival: "02:00:00:00:00:0b", AgeSeconds: 1},
		{Switch: "dvs", VLAN: plan.SegmentOf(7, false).In(5000), Address: "2001:db8::5", MAC: "02:00:00:00:00:05",
			Whose: api.OwnerTold, Endpoint: "192.0.2.2", Unsure: true, AgeSeconds: 61},
	}, LeftOff: 4, Counts: []api.NeighbourCounts{{Switch: "dvs", Answered: 12, Here: 3, HeldBack: 1, Spoofed: 2,
		Unbound: 5, Contested: 6}}}
}

func TestSegmentNeighbours_ShowsWhoHasAnAddressAndWhoClaimsIt(t *testing.T) {
	got := newConsole(t, &standIn{neighbours: *someNeighbours()}).must("segment", "neighbours")
	want := `
SWITCH  VLAN        ADDRESS      MAC                WHOSE        BEHIND      AGE  STATE      ALSO CLAIMED BY
dvs     vni:5000    10.0.0.3     02:00:00:00:00:03  port         vm3/eth0     7s  -          -
dvs     vni:5000    10.0.0.40    02:00:00:00:00:77  endpoint     192.0.2.2    1s  contested  02:00:00:00:00:0b
dvs     vni:5000/7  2001:db8::5  02:00:00:00:00:05  controllers  192.0.2.2  1m1s  unsure     -
and 4 more: see --limit and the other flags

SWITCH  ANSWERED  HERE  HELD BACK  SPOOFED  UNBOUND  CONTESTED
dvs           12     3          1        2        5          6
`[1:]
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	none := newConsole(t, &standIn{}).must("segment", "neighbours")
	if !strings.Contains(none, "no switch answers ARP and neighbour discovery") {
		t.Error(none)
	}
}

func TestSegmentNeighbours_AsksForWhatTheFlagsSay(t *testing.T) {
	s := &standIn{neighbours: *someNeighbours()}
	newConsole(t, s).must("segment", "neighbours", "5000", "--address", "::ffff:10.0.0.3", "--mac", "02-00-00-00-00-0A",
		"--whose", "endpoint", "--contested", "--limit", "7")
	want := api.NeighbourQuery{VNI: 5000, Address: "10.0.0.3", MAC: "02:00:00:00:00:0a", Whose: api.OwnerAtEndpoint,
		Contested: true, Limit: 7}
	if !slices.Contains(s.asked, any(want)) {
		t.Errorf("the host was asked %+v, want %+v", s.asked, want)
	}
}

func TestSegmentNeighbours_RefusesWhatNamesNothing(t *testing.T) {
	for _, row := range []struct{ args, want string }{
		{"web", "\"web\" is no VNI: a host knows segments by their VNI alone"},
		{"0", "0: a VNI is 1–16777214"},
		{"5000 --address 10.0.0.300", "--address \"10.0.0.300\" is no IP address"},
		{"--address fe80::1%eth0", "is no IP address"},
		{"--mac 02:00", "02:00"},
		{"--whose mine", "use port, endpoint or controllers"},
		{"--limit 0", "it is 1–10000"},
		{"--limit 10001", "it is 1–10000"},
		{"5000 6000", "at most VNI or PORT-GROUP"},
	} {
		t.Run(row.args, func(t *testing.T) {
			c := newConsole(t, &standIn{neighbours: *someNeighbours()})
			_, errs, status := c.run(append([]string{"segment", "neighbours"}, strings.Fields(row.args)...)...)
			if status != cli.ExitUsage || !strings.Contains(errs, row.want) {
				t.Errorf("status %d: %s\nwant %s", status, errs, row.want)
			}
		})
	}
}
