package rpc

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// many are hosts that are connected, each with ports, uplinks and MACs of its own.
func many(t *testing.T, f *fleet, n int) (all []*member) {
	for i := range n {
		report := &controllerv1.HostReport{Switches: []*controllerv1.HostSwitch{{Name: "dvs",
			Uplinks: []*controllerv1.HostUplink{{Name: "uplink1", Device: "eno1", State: "up"}}}}}
		for j := range 10 {
			report.Ports = append(report.Ports, &controllerv1.HostPort{Switch: "dvs", PortGroup: "web", State: "up",
				Name: fmt.Sprintf("vm%d-%d/eth0", i, j), Mac: fmt.Sprintf("02:00:00:00:%02x:%02x", i, j)})
		}
		m := arrivesWith(t, f, fmt.Sprintf("other%03d", i), nil, report)
		m.next()
		m.acknowledges()
		all = append(all, m)
	}
	return all
}

// What a host is sent at first, and by a change, is as large among many hosts with many ports as alone; and what other
// hosts report is not sent to it.
func TestNext_IsAsLargeInALargeFleet(t *testing.T) {
	type sizes struct{ first, change int }
	measured := map[int]sizes{}
	for _, n := range []int{0, 1, 250} {
		before := setOf(t, 10, "db")
		f := fleetOf(t, before)
		others := many(t, f, n)
		m := arrives(t, f, "one", nil)
		got := sizes{first: proto.Size(m.next())}
		for _, o := range others {
			o.f.said(o.host, o.conn, &controllerv1.FollowSliceRequest{Report: &controllerv1.HostReport{
				Ports: []*controllerv1.HostPort{{Switch: "dvs", PortGroup: "db", Name: "new/eth0", State: "up"}}}})
		}
		if r := m.next(); r != nil {
			t.Errorf("among %d hosts: what others report is sent on: %v", n, r)
		}
		f.take(events(before, setOf(t, 20, "db"), 2))
		got.change = proto.Size(m.next())
		if got.first < 100 || got.change < 50 {
			t.Errorf("among %d hosts: %+v bytes are too few for a slice and a change", n, got)
		}
		measured[n] = got
	}
	for n, got := range measured {
		if got != measured[0] {
			t.Errorf("among %d hosts one is sent %+v bytes, alone %+v", n, got, measured[0])
		}
	}
}
