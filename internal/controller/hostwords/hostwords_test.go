package hostwords

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// Words of a host are cut to a bounded length, whichever message they come in; those of a usual length stay.
func TestS191_WordsOfAHostAreBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	var many []string
	for i := range 100_000 {
		many = append(many, fmt.Sprint("line ", i))
	}
	report := func() *controllerv1.HostReport { return &controllerv1.HostReport{Warnings: []string{long, long}} }
	for name, m := range map[string]*controllerv1.FollowSliceRequest{
		"a hello": {Hello: &controllerv1.HostHello{Agent: long, Start: []byte(long), TogetherId: long,
			Report: report()}},
		"a report":           {Report: report()},
		"a change":           {Change: &controllerv1.HostReportChange{Warnings: many}},
		"an acknowledgement": {Acknowledgement: &controllerv1.SliceAcknowledgement{Problems: many, Warnings: many}},
		"a preparation":      {Prepared: &controllerv1.PreparedChange{Problems: []string{long}}},
		"a claim": {Claims: []*controllerv1.PortClaim{{Switch: long, PortGroup: long, Vm: long,
			Adapter: long}}},
	} {
		t.Run(name, func(t *testing.T) {
			if n := proto.Size(Bounded(m)); n > 3*mostWords {
				t.Errorf("%d bytes are left", n)
			}
		})
	}
	few := &controllerv1.FollowSliceRequest{Hello: &controllerv1.HostHello{Agent: "0.1.0+12.gabcdef",
		Start:  []byte("0123456789abcdef"),
		Report: &controllerv1.HostReport{Warnings: []string{"device eno9 is missing"}}}}
	if was := proto.CloneOf(few); !proto.Equal(Bounded(few), was) {
		t.Errorf("words of a usual length became %v", few)
	}
	if lines := boundLines(many); len(lines) != mostLines+1 || lines[mostLines] != "and 99800 more lines" {
		t.Errorf("%d lines, at last %q", len(lines), lines[len(lines)-1])
	}
}
