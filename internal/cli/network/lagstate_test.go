package network

import (
	"testing"

	"heddle/internal/api"
)

func TestLAG_ItsState(t *testing.T) {
	member := func(state api.PortState, used, single bool) api.Uplink {
		return api.Uplink{Switch: "lab", State: state, Speed: 1e9, LAG: &api.LAGMember{Name: "lag1", Used: used,
			Single: single}}
	}
	for _, row := range []struct {
		name    string
		members []api.Uplink
		state   string
		speed   uint64
	}{
		{"all", []api.Uplink{member(api.Up, true, false), member(api.Up, true, false)}, "up", 2e9},
		{"one link down", []api.Uplink{member(api.Up, true, false), member(api.Down, true, false)}, "degraded", 1e9},
		{"alone", []api.Uplink{member(api.Up, true, true), member(api.Out, false, false)}, "single", 1e9},
		{"none", []api.Uplink{member(api.Out, false, false), member(api.Down, false, false)}, "down", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			list := lags(&api.State{Uplinks: row.members})
			if len(list) != 1 || list[0].State != row.state || list[0].Speed != row.speed {
				t.Errorf("%+v", list)
			}
		})
	}
}
