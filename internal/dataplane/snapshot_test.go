package dataplane

import (
	"slices"
	"testing"
)

// A table that is new must be looked at: if what it holds decides about frames, a snapshot has to copy it, or dry runs
// on a live host are wrong. Say here which it is.
func TestEveryTableThatDecidesIsInASnapshot(t *testing.T) {
	copied := []string{"ports", "vlan_sets", "teams", "segments", "groups", "members", "owners", "guard_addresses",
		"control", "macs", "held", "own_marks", "marks", "storm_buckets", "awake", "speakers"}
	// They count, meter, name, tell and capture, say which device is which port's, hold the frame at hand, or are a dry
	// run's and a benchmark's own.
	others := []string{"counts", "counts_before", "rare_counts", "rare_counts_before", "port_names", "switch_names",
		"tells", "told", "slot_by_ifindex", "slot_by_high_ifindex",
		"grace", "flows", "wide_flows", "shared_flows", "flow_places", "meter_control", "meter_points", "flow_rooms",
		"packets", "meter_scratch", "record_control", "records", "bench_control", "bench_frames", "ingress_stand_in",
		"egress_stand_in"}
	spec, err := loadVswitch()
	if err != nil {
		t.Fatal(err)
	}
	for name := range spec.Maps {
		if name[0] != '.' && !slices.Contains(copied, name) && !slices.Contains(others, name) {
			t.Errorf("table %s is in no list: does a frame's fate depend on what it holds?", name)
		}
	}
}
