package rpc

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/identity"
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
			if n := proto.Size(bounded(m)); n > 3*mostWords {
				t.Errorf("%d bytes are left", n)
			}
		})
	}
	few := &controllerv1.FollowSliceRequest{Hello: &controllerv1.HostHello{Agent: "0.1.0+12.gabcdef",
		Start: []byte("0123456789abcdef"), Report: &controllerv1.HostReport{Warnings: []string{"device eno9 is missing"}}}}
	if was := proto.CloneOf(few); !proto.Equal(bounded(few), was) {
		t.Errorf("words of a usual length became %v", few)
	}
	if lines := boundLines(many); len(lines) != mostLines+1 || lines[mostLines] != "and 99800 more lines" {
		t.Errorf("%d lines, at last %q", len(lines), lines[len(lines)-1])
	}
}

// A host that says without end why it cannot activate a version writes a bounded number of lines in the log.
func TestS191_AHostFillsNoLog(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	c.up("esx1")
	c.fleet.mu.Lock()
	h, k := c.fleet.names["esx1"], c.fleet.names["esx1"].conn
	c.fleet.mu.Unlock()
	for i := range 1000 {
		c.fleet.said(h, k, bounded(&controllerv1.FollowSliceRequest{Acknowledgement: &controllerv1.SliceAcknowledgement{
			Version:  &controllerv1.SliceVersion{Revision: 1, Hash: make([]byte, 32)},
			Problems: []string{fmt.Sprint("fault ", i)}}}))
	}
	if n := c.log.count("a host cannot activate the definition"); n == 0 || n > lineBurst+10 {
		t.Errorf("%d lines are in the log", n)
	}
}

// A stranger with tokens that do not count writes a bounded number of lines in the log.
func TestS191_AStrangerFillsNoLog(t *testing.T) {
	c := newController(t)
	for range 100 {
		wrong := identity.NewJoinToken(c.authority.Fingerprint()).Text()
		if _, err := (&machine{c: c, dir: t.TempDir()}).ask("esx1", wrong); err == nil {
			t.Fatal("it is let in")
		}
	}
	if n := c.log.count("JoinHost"); n > 15 {
		t.Errorf("%d lines are in the log", n)
	}
}
