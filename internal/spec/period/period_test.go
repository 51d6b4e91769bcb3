package period

import (
	"strings"
	"testing"
	"time"
)

func TestPeriodsAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"5": 5 * time.Second, "0.5": time.Second / 2, "0": 0, "-1": -time.Second, " 10 ": 10 * time.Second,
		"5s": 5 * time.Second, "2m": 2 * time.Minute,
		"1h30m": 90 * time.Minute, "250ms": 250 * time.Millisecond, "+3": 3 * time.Second, ".5": time.Second / 2,
		"30d": 720 * time.Hour, "0d": 0, "2d12h": 60 * time.Hour,
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", " ", "5 s", "5 minutes", "1e3", "0x10", "inf", "NaN", "99999999999999", "d",
		"-1d", "1.5d", "1d24h", "1d2", "2h1d", "999999999d", "-"} {
		if got, err := Parse(text); err == nil ||
			!strings.HasSuffix(err.Error(), "is not a time: say 5s, 2m or a number of seconds") {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
}
