package network

import (
	"errors"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/cli"
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

// A VNI that cannot be is wrong use, and no name of a port group.
func TestAnArgumentIsAVNIOrAName(t *testing.T) {
	for arg, want := range map[string]uint32{"1": 1, "16777214": 16777214, "web": 0, "5000x": 0, "-1": 0, "": 0} {
		if got, is, err := numberOfVNI(arg); got != want || is != (want > 0) || err != nil {
			t.Errorf("%q: %d, %v, %v", arg, got, is, err)
		}
	}
	for _, arg := range []string{"0", "16777215", "99999999999999999999"} {
		var wrong *cli.UsageError
		if _, is, err := numberOfVNI(arg); !is || !errors.As(err, &wrong) || !strings.Contains(err.Error(),
			": a VNI is 1–16777214") {
			t.Errorf("%q: %v, %v", arg, is, err)
		}
	}
}

func TestASearchInASegmentSaysThatNobodyIsFound(t *testing.T) {
	s := &api.SegmentDetail{Members: []api.SegmentMember{{Host: "h1"}, {Host: "h2"}}}
	for _, c := range []struct {
		name, want string
		q          api.SegmentQuery
	}{
		{"no search", "", api.SegmentQuery{VNI: 7}},
		{"a host without MACs", "", api.SegmentQuery{VNI: 7, Host: "h2"}},
		{"another host", "host h3 has no port in VNI 7; there are h1, h2", api.SegmentQuery{VNI: 7, Host: "h3"}},
		{"an address", "nobody is known to have 10.0.0.7 in VNI 7", api.SegmentQuery{VNI: 7, Key: "10.0.0.7"}},
		{"a MAC on a host", "nobody on host h1 is known to have 02:00:00:00:00:01 in VNI 7",
			api.SegmentQuery{VNI: 7, Host: "h1", Key: "02:00:00:00:00:01"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := nobodyIn(s, c.q)
			if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("said %v, want %q", err, c.want)
			}
		})
	}
}
