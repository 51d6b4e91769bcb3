package cli

import (
	"strings"
	"testing"

	"heddle/internal/api"
)

func TestASegmentIsNamedByOneOfItsPortGroups(t *testing.T) {
	list := []api.Segment{
		{VNI: 5000, Switch: "dvs", PortGroups: []string{"db", "web"}},
		{VNI: 6000, Switch: "lab", PortGroups: []string{"web"}},
		{VNI: 7000}, // hosts have ports in it, and the definition lacks it
	}
	for arg, want := range map[string]uint32{"db": 5000, "dvs/web": 5000, "lab/web": 6000} {
		if got, err := vniNamed(list, arg); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", arg, got, err, want)
		}
	}
	for arg, want := range map[string]string{
		"web":    "2 segments have a port group web: say which, as dvs/web or lab/web",
		"mail":   "no port group mail has an overlay segment (heddle segment list)",
		"lab/db": "no port group lab/db has an overlay segment (heddle segment list)",
	} {
		if _, err := vniNamed(list, arg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", arg, err, want)
		}
	}
}

func TestASegmentIsPrintedWithWhatIsMissing(t *testing.T) {
	var out strings.Builder
	if err := printSegment(&out, &api.SegmentDetail{
		Segment: api.Segment{VNI: 5000, Switch: "dvs", PortGroups: []string{"web"}, MACs: 1201},
		Members: []api.SegmentMember{{Host: "h1", Connected: true, MACs: 1201, At: []api.SegmentEndpoint{
			{Address: "192.0.2.1", Down: true}}}, {Host: "h2"}},
		Locations: []api.SegmentLocation{{Key: "02:00:00:00:00:01", Host: "h1", Source: api.SegmentLearned,
			Contested: []string{"h2"}}},
		LeftOff: 1200,
	}); err != nil {
		t.Fatal(err)
	}
	want := `vni:          5000
switch:       dvs
port groups:  web
macs:         1201

HOST  CONNECTED  MACS  ENDPOINTS
h1    yes        1201  192.0.2.1 (down)
h2    no            0  -

MAC                HOST  ENDPOINT  SOURCE   GENERATION  SINCE  ALSO CLAIMED BY
02:00:00:00:00:01  h1    -         learned           0  -      h2
and 1200 more: see --limit, --host and --mac
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
