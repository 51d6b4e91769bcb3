package rpc

import (
	"strings"
	"testing"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// A host whose uplinks are all down is down, whatever else is the matter with it; out of use is a warning.
func TestState_Down(t *testing.T) {
	d := setOf(t, 10)
	f := fleetOf(t, d)
	m := arrives(t, f, "a", nil)
	said := func(switches ...*controllerv1.HostSwitch) {
		f.said(m.host, m.conn, &controllerv1.FollowSliceRequest{Change: &controllerv1.HostReportChange{
			Switches: switches, Warnings: []string{"w"}}})
	}
	expect := func(what string, want controllerv1.HostState, why string) {
		t.Helper()
		f.mu.Lock()
		defer f.mu.Unlock()
		if got, problems := f.state(m.host); got != want || strings.Join(problems, "; ") != why {
			t.Errorf("%s: %v %q, want %v %q", what, got, problems, want, why)
		}
	}
	cut := &controllerv1.HostSwitch{Name: "dvs", Isolated: "no uplink is up"}
	out := &controllerv1.HostSwitch{Name: "dvs", Isolated: "out of use", Maintained: true}
	foreign := &controllerv1.HostSwitch{Name: "own", Isolated: "not its to report"}
	m.next()
	said(cut)
	expect("before it has the definition", controllerv1.HostState_HOST_STATE_PENDING, "no uplink is up")
	m.acknowledges()
	expect("no uplink", controllerv1.HostState_HOST_STATE_DOWN, "no uplink is up; w")
	said(out)
	expect("out of use", controllerv1.HostState_HOST_STATE_WARNING, "w; out of use")
	said(foreign)
	expect("a switch that is not the definition's", controllerv1.HostState_HOST_STATE_WARNING, "w")
	said(&controllerv1.HostSwitch{Name: "dvs"})
	expect("an uplink", controllerv1.HostState_HOST_STATE_WARNING, "w")
	next := setOf(t, 20)
	f.take(events(d, next, 2))
	m.next()
	said(cut)
	hash := m.set.Hash()
	f.said(m.host, m.conn, &controllerv1.FollowSliceRequest{Acknowledgement: &controllerv1.SliceAcknowledgement{
		Version: &controllerv1.SliceVersion{Hash: hash[:]}, Problems: []string{"no device"}}})
	expect("not active", controllerv1.HostState_HOST_STATE_OUT_OF_SYNC, "no device; no uplink is up")
	f.leave(m.host, m.conn)
	expect("away", controllerv1.HostState_HOST_STATE_DISCONNECTED, "")
}
