package dataplane

import (
	"slices"
	"testing"
)

// For each new table, decide here: if its content affects what happens to frames, a snapshot must copy it; otherwise
// dry runs on a live host are wrong.
func TestEveryTableThatDecidesIsInASnapshot(t *testing.T) {
	copied := []string{"ports", "vlan_sets", "teams", "segments", "groups", "members", "owners", "guard_addresses",
		"control", "macs", "held", "own_marks", "marks", "storm_buckets", "awake", "speakers", "outside_locations",
		"outside_endpoints"}
	// They count, meter, name, report and capture, map devices to ports, contain the present frame, or belong to a
	// dry run or a benchmark.
	others := []string{"counts", "counts_before", "rare_counts", "rare_counts_before", "port_names", "switch_names",
		"tells", "told", "slot_by_ifindex", "slot_by_high_ifindex",
		"grace", "flows", "wide_flows", "shared_flows", "flow_places", "meter_control", "meter_points", "flow_rooms",
		"packets", "asides", "meter_scratch", "record_control", "records", "bench_control", "bench_frames",
		"ingress_stand_in", "egress_stand_in"}
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
