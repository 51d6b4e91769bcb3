package portable

import (
	"bytes"
	"strings"
	"testing"
)

func TestOtherSystemsSimulateAndSayWhatNeedsLinux(t *testing.T) {
	for _, c := range []struct {
		args   string
		status int
		says   string
	}{
		{"lab run nested-mac-learning --simulate --row promiscuous-dual", 0, "promiscuous-dual  4.00"},
		{"lab run placement-paths --simulate -o json", 0, `"leaves_host": true`},
		{"", 0, "On plan9 it simulates"},
		{"lab", 0, "Run experiments"},
		{"lab run nested-mac-learning", 1, "heddle: this is plan9: real traffic takes Linux 6.6 or newer; add " +
			"--simulate"},
		{"lab check", 1, "heddle: this is plan9: labs take Linux"},
		{"lab run nonsense --simulate", 2, "there is no experiment nonsense; there are nested-mac-learning"},
		{"lab run placement-paths --simulate --row nonsense", 2,
			"experiment placement-paths has no row nonsense; it has different-switch"},
		{"lab run placement-paths --simulate -o xml", 2, "want table, json or yaml"},
		{"lab run", 2, "accepts 1 arg"},
		{"agent", 2, "unknown command"},
	} {
		var stdout, stderr bytes.Buffer
		status := Run("plan9", strings.Fields(c.args), &stdout, &stderr)
		out := &stdout
		if c.status != 0 {
			out = &stderr
		}
		if status != c.status || !strings.Contains(out.String(), c.says) {
			t.Errorf("heddle %s: status %d, want %d, saying %q:\n%s%s", c.args, status, c.status, c.says,
				stdout.String(), stderr.String())
		}
	}
}
