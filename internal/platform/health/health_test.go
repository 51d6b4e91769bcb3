package health

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
)

// well is a controller of which nothing is wrong.
func well() *api.ControllerStatus {
	return &api.ControllerStatus{RootStage: "steady", Clock: api.ClockSynchronised, DiskFree: 50 << 30,
		DiskSize: 100 << 30,
		Hosts:    map[string]int{"up": 3}, RootEnds: time.Unix(2e9, 0), CertificateEnds: time.Unix(1.9e9, 0),
		Store: api.StoreStatus{Embedded: true, Quota: 8 << 30, Size: 1 << 20, InUse: 1 << 19,
			Members: []api.StoreMember{
				{Name: "c1", Leader: true, Self: true, Answered: true}}}}
}

func TestExamine(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*api.ControllerStatus)
		hosts  []HostProblem
		want   string // LEVEL CHECK and a part of the text; "" where all is well
	}{
		"well":  {func(*api.ControllerStatus) {}, nil, ""},
		"stale": {func(s *api.ControllerStatus) { s.Store.Stale = "no quorum" }, nil, "wrong store no quorum"},
		"alarm": {func(s *api.ControllerStatus) { s.Store.Alarms = []string{"NOSPACE"} }, nil,
			"wrong alarms NOSPACE"},
		"quota": {func(s *api.ControllerStatus) { s.Store.Size = 7 << 30 }, nil,
			"wrong quota 7.0 GiB of its 8.0 GiB"},
		"full": {func(s *api.ControllerStatus) { s.Store.Full, s.Store.Size = true, 5<<30 }, nil,
			"wrong quota no changes are taken"},
		"growing": {func(s *api.ControllerStatus) { s.Store.Size = 5 << 30 }, nil, "note quota 5.0 GiB"},
		"lag":     {func(s *api.ControllerStatus) { s.Store.Members[0].Lag = 5000 }, nil, "wrong members c1 is 5000"},
		"leader": {func(s *api.ControllerStatus) { s.Store.Members[0].Leader = false }, nil,
			"wrong members no leader"},
		"even": {func(s *api.ControllerStatus) { s.Store.Members = append(s.Store.Members, api.StoreMember{}) },
			nil, "note members 2 members vote"},
		"member": {func(s *api.ControllerStatus) { s.Store.Members[0].Error = "refused" }, nil,
			"wrong members refused"},
		"soon":     {func(s *api.ControllerStatus) { ends(s, api.ExpirySoon) }, nil, "note expiry the token of ann"},
		"urgent":   {func(s *api.ControllerStatus) { ends(s, api.ExpiryUrgent) }, nil, "wrong expiry the token of ann"},
		"rotation": {func(s *api.ControllerStatus) { s.RootStage = "switched" }, nil, "note root switched"},
		"hosts": {func(*api.ControllerStatus) {}, []HostProblem{{"esx1", "out-of-sync", "no device"}},
			"wrong hosts 1 of 3 cannot activate the definition: esx1 (no device)"},
		"down": {func(*api.ControllerStatus) {}, []HostProblem{{"esx1", "down", "no uplink of switch dvs is up"}},
			"wrong hosts 1 of 3 cut off from the physical network with all guests: esx1 (no uplink"},
		"many hosts": {func(*api.ControllerStatus) {}, []HostProblem{{"a", "disconnected", ""},
			{"b", "disconnected", ""},
			{"c", "disconnected", ""}, {"d", "disconnected", ""}, {"e", "disconnected", ""}, {"f", "disconnected", ""}},
			"note hosts a, b, c, d, e and 1 more"},
		"disk": {func(s *api.ControllerStatus) { s.DiskFree = 1 << 30 }, nil,
			"wrong disk 1.0 GiB of 100.0 GiB"},
		"little disk":  {func(s *api.ControllerStatus) { s.DiskFree = 10 << 30 }, nil, "note disk 10.0 GiB"},
		"clock":        {func(s *api.ControllerStatus) { s.Clock = api.ClockFree }, nil, "note clock follows no other"},
		"unknown disk": {func(s *api.ControllerStatus) { s.DiskSize = 0 }, nil, "unknown disk not known"},
	} {
		t.Run(name, func(t *testing.T) {
			s := well()
			c.change(s)
			s.Findings = Examine(s, c.hosts)
			var said []string
			for _, f := range s.Findings {
				if f.Level != api.HealthOK {
					said = append(said, string(f.Level)+" "+f.Check+" "+f.Text)
				}
			}
			words := strings.SplitN(c.want, " ", 3)
			switch {
			case c.want == "" && len(said) > 0, c.want != "" && len(said) != 1:
				t.Fatalf("found %q", said)
			case c.want != "" && (!strings.HasPrefix(said[0], words[0]+" "+words[1]) ||
				!strings.Contains(said[0], words[2])):
				t.Errorf("found %q", said)
			}
			if got := Healthy(s.Findings); got == (words[0] == "wrong") {
				t.Errorf("healthy: %v", got)
			}
			var b bytes.Buffer
			if err := Write(&b, s); err != nil || strings.Contains(b.String(), "all is well") != (c.want == "" ||
				words[0] == "unknown") {
				t.Errorf("%v\n%s", err, &b)
			}
		})
	}
}

func ends(s *api.ControllerStatus, level api.ExpiryLevel) {
	s.Expiring = []api.ExpiryWarning{{Subject: "token", Level: level,
		Text: "the token of ann expires in 6 days, on 2026-11-30: make a new one"}}
}

func TestSkew(t *testing.T) {
	now := time.Unix(2e9, 0)
	if _, off := Skew("c", "this", now.Add(20*time.Second), now, 0); off {
		t.Error("20 s are too much")
	}
	f, off := Skew("c2", "this one", now.Add(-time.Hour), now, time.Second)
	if !off || f.Text != "c2's clock is 1h0m0s behind this one's" {
		t.Errorf("an hour behind: %+v", f)
	}
}

func TestSkewToHosts(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		ahead []time.Duration
		want  string
	}{
		{[]time.Duration{-26 * time.Hour, -26*time.Hour - 3*time.Second, -25 * time.Hour},
			"this controller's clock is 26h0m0s ahead of those of most hosts"},
		{[]time.Duration{day, day, day, 0}, "this controller's clock is 24h0m0s behind those of most hosts"},
		{[]time.Duration{day, day}, ""},                       // too few to say whose is wrong
		{[]time.Duration{-56 * 365 * day, 0, 0, 0}, ""},       // one host has lost its time
		{[]time.Duration{-day, -day, day, day}, ""},           // they don't agree
		{[]time.Duration{time.Minute, time.Minute, -day}, ""}, // most are right
		{nil, ""},
	} {
		f, off := SkewToHosts(c.ahead)
		if f.Text != c.want || off != (c.want != "") {
			t.Errorf("%v: %q, want %q", c.ahead, f.Text, c.want)
		}
	}
}

func TestTooFarAhead(t *testing.T) {
	const h = time.Hour
	for _, c := range []struct {
		ahead []time.Duration
		by    time.Duration
		wrong bool
	}{
		{nil, 0, false},
		{[]time.Duration{-23 * h}, 0, false},
		{[]time.Duration{-25 * h}, 25 * h, true},
		{[]time.Duration{30 * 24 * h}, 0, false},
		{[]time.Duration{-49 * h, -50 * h}, 49 * h, true},
		{[]time.Duration{-49 * h, 0}, 49 * h, false}, // the other two agree
		{[]time.Duration{-49 * h, 0, -48 * h}, 48 * h, true},
	} {
		if by, wrong := TooFarAhead(c.ahead); by != c.by || wrong != c.wrong {
			t.Errorf("%v: %v, %v", c.ahead, by, wrong)
		}
	}
}
