package rpc

import (
	"slices"
	"testing"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/fanout"
	"heddle/internal/platform/access/roles"
)

// A capture is judged by the port groups of its ports, each once however often a port is named, and by the whole
// cluster where a port is not reported.
func TestS117_ACaptureIsJudgedByThePortGroupsOfItsPorts(t *testing.T) {
	web, db := roles.Scope{Switch: "dvs", PortGroup: "web"}, roles.Scope{Switch: "dvs", PortGroup: "db"}
	there := fanout.Report(&controllerv1.HostReport{Ports: []*controllerv1.HostPort{
		{Switch: "dvs", Name: "w1", PortGroup: "web"}, {Switch: "dvs", Name: "w2", PortGroup: "web"},
		{Switch: "dvs", Name: "d1", PortGroup: "db"}, {Switch: "lan", Name: "d1", PortGroup: "db"},
	}})
	for _, row := range []struct {
		name   string
		report fanout.Report
		sw     string
		names  []string
		want   []roles.Scope
	}{
		{"a port", there, "", []string{"w1"}, []roles.Scope{web}},
		{"a port that is named again and again", there, "dvs", slices.Repeat([]string{"w1"}, 2048), []roles.Scope{web}},
		{"two ports of one port group", there, "", []string{"w1", "w2"}, []roles.Scope{web}},
		{"one switch's", there, "dvs", []string{"d1", "w1"}, []roles.Scope{web, db}},
		{"each switch's", there, "", []string{"d1"}, []roles.Scope{db, {Switch: "lan", PortGroup: "db"}}},
		{"a port that is not reported", there, "", []string{"w1", "x"}, nil},
		{"another switch's", there, "lan", []string{"w1"}, nil},
		{"a host that has reported nothing", nil, "", []string{"w1"}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := groupsOf(row.report, row.sw, row.names); !slices.Equal(got, row.want) {
				t.Errorf("%v, want %v", got, row.want)
			}
		})
	}
}
