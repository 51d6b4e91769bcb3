package period

import (
	"testing"
	"time"
)

func TestAge(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 999 * time.Millisecond, "1s": time.Second, "59s": time.Minute - 1, "1m": time.Minute,
		"1m30s": 90*time.Second + 999*time.Millisecond, "59m59s": time.Hour - 1, "1h": time.Hour + 59*time.Second,
		"3h20m": 200 * time.Minute, "23h59m": 24*time.Hour - 1, "2d5h": 53*time.Hour + 59*time.Minute,
		"400d": 400*24*time.Hour + time.Minute,
	} {
		t.Run(want, func(t *testing.T) {
			if got := Age(d); got != want {
				t.Errorf("%s: %q", d, got)
			}
		})
	}
	if got := Age(-time.Hour); got != "0s" {
		t.Errorf("a time to come: %q", got)
	}
}
