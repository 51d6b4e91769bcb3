package rpc

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
)

func portOf(sw, name, group string) *controllerv1.HostPort {
	return &controllerv1.HostPort{Switch: sw, Name: name, PortGroup: group, State: "up", Device: "tap0"}
}

// text is what a report has, sorted.
func (r *report) text() (list []string) {
	for _, p := range r.GetPorts() {
		list = append(list, fmt.Sprintf("%s/%s in %s", p.GetSwitch(), p.GetName(), p.GetPortGroup()))
	}
	slices.Sort(list)
	return list
}

// A report that is changed is the one that would have been reported whole.
func TestReport_Changes(t *testing.T) {
	all := func(*controllerv1.HostPort) bool { return true }
	first := must(newReport([]*controllerv1.HostPort{portOf("s", "a", "web"), portOf("s", "b", "db"),
		portOf("t", "a", "web")}, []string{"one"}, all))(t)
	for name, c := range map[string]struct {
		from   *report
		change *controllerv1.HostReportChange
		keep   func(*controllerv1.HostPort) bool
		want   []string
		warned []string
	}{
		"nothing but warnings": {from: first, change: &controllerv1.HostReportChange{Warnings: []string{"two"}},
			want: []string{"s/a in web", "s/b in db", "t/a in web"}, warned: []string{"two"}},
		"a port moves": {from: first, change: &controllerv1.HostReportChange{
			Put: []*controllerv1.HostPort{portOf("s", "a", "db")}},
			want: []string{"s/a in db", "s/b in db", "t/a in web"}},
		"one comes, one goes": {from: first, change: &controllerv1.HostReportChange{
			Put:     []*controllerv1.HostPort{portOf("s", "c", "web")},
			Removed: []*controllerv1.HostPortKey{{Switch: "t", Name: "a"}}},
			want: []string{"s/a in web", "s/b in db", "s/c in web"}},
		"one that is not there goes": {from: first, change: &controllerv1.HostReportChange{
			Removed: []*controllerv1.HostPortKey{{Switch: "t", Name: "b"}}},
			want: []string{"s/a in web", "s/b in db", "t/a in web"}},
		"of nothing": {change: &controllerv1.HostReportChange{
			Put: []*controllerv1.HostPort{portOf("s", "a", "web")}}, want: []string{"s/a in web"}},
		"a port moves to where it is not its": {from: first, change: &controllerv1.HostReportChange{
			Put: []*controllerv1.HostPort{portOf("s", "a", "other")}},
			keep: func(p *controllerv1.HostPort) bool { return p.GetPortGroup() != "other" },
			want: []string{"s/b in db", "t/a in web"}},
	} {
		t.Run(name, func(t *testing.T) {
			keep := c.keep
			if keep == nil {
				keep = all
			}
			got := must(c.from.changed(c.change, keep))(t)
			if !slices.Equal(got.text(), c.want) || got.count() != len(c.want) ||
				!slices.Equal(got.GetWarnings(), c.warned) {
				t.Errorf("%d ports: %q, warnings %q, want %q and %q", got.count(), got.text(), got.GetWarnings(),
					c.want, c.warned)
			}
		})
	}
	if want := []string{"s/a in web", "s/b in db", "t/a in web"}; !slices.Equal(first.text(), want) {
		t.Errorf("the report before has become %q", first.text())
	}
	if got := first.users("s", "web"); !slices.Equal(got, []string{"a"}) {
		t.Errorf("users %q", got)
	}
	if got := first.users("s", "tap0"); got != nil {
		t.Errorf("users of a port group without ports %q", got)
	}
	var none *report
	if none.count() != 0 || len(none.GetPorts()) != 0 || none.users("s", "web") != nil || none.GetWarnings() != nil {
		t.Error("a host that has reported nothing has something")
	}
}

// What a port is called is found in its message whatever else that has.
func TestReport_FindsWhatAPortIsCalled(t *testing.T) {
	for _, p := range []*controllerv1.HostPort{
		{}, {Switch: "s"}, {Name: "vm1/eth0"},
		{Switch: "dvs", Name: "vm1/eth0", PortGroup: "web", State: "up", Mac: "02:00:00:00:00:01", Device: "tap0",
			Since: timestamppb.Now(), Vm: "v", Adapter: "net0", Port: "33", Waits: true, Arrived: true, Role: "host"},
	} {
		body := must(proto.Marshal(p))(t)
		if sw, name := keyOf(body); string(sw) != p.GetSwitch() || string(name) != p.GetName() {
			t.Errorf("%v: %q of switch %q", p, name, sw)
		}
		for cut := range body {
			keyOf(body[:cut]) // ends
		}
	}
}

// A host can report by changes no more than it can at once.
func TestS104_ReportsByChangesAreBounded(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	m := c.up("esx1")
	f := c.fleet
	id := m.record.Host()
	long := make([]byte, 1<<20)
	for i := range long {
		long[i] = 'x'
	}
	var h *host
	ended := false
	for i := range maxBody>>20 + 1 {
		f.mu.Lock()
		if h = f.hosts[id]; h.conn != nil {
			p := portOf("dvs", fmt.Sprintf("%d%s", i, long), "web")
			f.amended(h, h.conn, &controllerv1.HostReportChange{Put: []*controllerv1.HostPort{p}})
			select {
			case <-h.conn.done:
				ended = true
			default:
			}
		}
		f.mu.Unlock()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !ended {
		t.Error("the connection goes on")
	}
	if len(h.report.wire) > maxBody {
		t.Errorf("the controller keeps %d bytes", len(h.report.wire))
	}
}
