package cli

import (
	"net/netip"
	"strings"
	"testing"

	"heddle/internal/diagnose"
)

func TestForeseen_SaysHowOftenAndFromWhere(t *testing.T) {
	for name, c := range map[string]struct {
		seconds       float64
		address, want string
		not           string
	}{
		"a moment":                   {0.2, "192.0.2.1", "1 frame in the last second", "0s"},
		"some seconds":               {12, "192.0.2.1", "1 frame in the last 12s", ""},
		"the hour that is kept":      {3600, "192.0.2.1", "1 frame in the last hour", ""},
		"since the port's beginning": {0, "192.0.2.1", "1 frame since it was connected", ""},
		"a station without address":  {12, "::", "from 00:00:00:00:00:00, ", "::"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &diagnose.Loss{Port: "a", Frames: 1, Seconds: c.seconds, Address: netip.MustParseAddr(c.address)}
			got := strings.Join(lossLines(Deps{}, "", l), "\n")
			if !strings.Contains(got, c.want) || c.not != "" && strings.Contains(got, c.not) {
				t.Errorf("%s\nwant %q, and not %q", got, c.want, c.not)
			}
		})
	}
}
