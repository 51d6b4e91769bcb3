package agent

import (
	"strings"
	"testing"
)

func TestState_AnUplinksSpeedIsItsDevices(t *testing.T) {
	r := newLoadRig(t)
	r.dev.speed = map[string]float64{"eno1": 25e9}
	got := map[string]uint64{}
	for _, u := range r.answers.view().Uplinks {
		got[u.Name] = u.Speed
	}
	if got["u1"] != 25e9 || got["u2"] != 0 {
		t.Errorf("speeds %v", got)
	}
}

func TestBlock_AnUplinkIsBlockedInTheFile(t *testing.T) {
	r := newLoadRig(t)
	for _, row := range []struct {
		name    string
		blocked bool
		says    string
	}{
		{"block", true, "u1 is an uplink, and an uplink is blocked in the configuration file: set " +
			"switches[lab].uplinks[u1].blocked to true, then run"},
		{"unblock", false, "an uplink is unblocked in the configuration file: set switches[lab].uplinks[u1].blocked " +
			"to false, then run"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if err := r.block("u1", row.blocked); err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%v", err)
			}
		})
	}
}
