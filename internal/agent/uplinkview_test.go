package agent

import (
	"context"
	"strings"
	"testing"

	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/plan"
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

func TestBlock_AnUplinkHasCommandsOfItsOwn(t *testing.T) {
	r := newLoadRig(t)
	for _, row := range []struct {
		name    string
		blocked bool
		says    string
	}{
		{"block", true, `u1 is an uplink: use "heddle uplink block u1"`},
		{"unblock", false, `u1 is an uplink: use "heddle uplink restore u1"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			if err := r.block("u1", row.blocked); err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

// Maintenance by command ends with the uplink, and does not apply to an uplink of the same name that is added later.
func TestMaintain_IsForgottenWithTheUplink(t *testing.T) {
	r := newLoadRig(t)
	err := r.command(func(ctx context.Context) error {
		_, err := r.maintain.Maintain(ctx, api.Maintain{Uplink: "u2", Use: "gone"})
		return err
	})
	if err == nil || !strings.Contains(err.Error(), `"gone" is no use of an uplink`) {
		t.Errorf("%v", err)
	}
	id := plan.PortID{Switch: "lab", Name: "u2"}
	r.state.Maintenance = []state.Maintenance{{ID: id}, {ID: plan.PortID{Switch: "lab", Name: "u9"}}}
	r.ports.forgetMaintenance()
	if got := r.state.Maintenance; len(got) != 1 || got[0].ID != id {
		t.Errorf("%+v", got)
	}
}
