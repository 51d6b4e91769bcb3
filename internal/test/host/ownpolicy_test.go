package host

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

const ownVLANs = `
switches:
  - name: lab
    portGroups:
      - {name: ten, vlan: {access: 10}, overrides: {vlan: true}}
      - {name: keeps, vlan: {access: 10}, overrides: {vlan: true, resetAtDisconnect: false}}
      - {name: all, vlan: {trunk: ["0-4094"]}, security: {forgedTransmits: accept}}
ports:
  - {name: sees, switch: lab, portGroup: all, device: psees, mac: "02:00:00:00:00:01"}
  - {name: ten, switch: lab, portGroup: ten, device: pten, mac: "02:00:00:00:00:02"}
  - {name: filed, switch: lab, portGroup: ten, device: pfiled, mac: "02:00:00:00:00:03", vlan: {access: 66}}
`

// segments is a host on which is seen in which VLAN a port's broadcasts are.
type segments struct {
	*host
	sees, ten *cable.End
	sent      byte
}

func newSegments(t *testing.T) *segments {
	s := &segments{host: newHost(t)}
	s.start("--config", s.file("heddle.yaml", ownVLANs))
	s.sees = cable.Open(t, s.guest("psees", "02:00:00:00:00:01", "192.0.2.1/24"), "eth0")
	s.ten = cable.Open(t, s.guest("pten", "02:00:00:00:00:02", "192.0.2.2/24"), "eth0")
	s.awaitPort("sees", api.Up)
	s.awaitPort("ten", api.Up)
	return s
}

func broadcast(source [6]byte, number byte) []byte {
	f := append([]byte{255, 255, 255, 255, 255, 255}, source[:]...)
	return append(append(f, 0x88, 0xb5, number), make([]byte, 45)...)
}

func tagged(f []byte, vid uint16) []byte {
	return slices.Concat(f[:12], []byte{0x81, 0, byte(vid >> 8), byte(vid)}, f[12:])
}

// speaksIn sends a broadcast from the guest and holds against it, whole, what the trunk and the port of VLAN 10
// receive.
func (s *segments) speaksIn(vid uint16, vm *netns.NS, why string) {
	s.t.Helper()
	s.sent++
	f := broadcast([6]byte{2, 0, 0, 0, 0, 0x0a}, s.sent)
	cable.Open(s.t, vm, "eth0").Send(f)
	s.sees.Expect(tagged(f, vid), why)
	end := broadcast([6]byte{2, 0, 0, 0, 0, 1}, s.sent)
	s.sees.Send(tagged(end, 10))
	got := slices.ContainsFunc(s.ten.Until(end), func(g []byte) bool { return bytes.Equal(g, f) })
	if want := vid == 10; got != want {
		s.t.Errorf("%s: the port of VLAN 10 received the broadcast: %v, want %v", why, got, want)
	}
}

func (s *segments) plug() *netns.NS {
	s.t.Helper()
	vm := s.guest("pv", "02:00:00:00:00:0a", "192.0.2.10/24")
	s.awaitPort("vm", api.Up)
	return vm
}

func (s *segments) unplug() {
	s.t.Helper()
	s.ip("link del pv")
	s.awaitPort("vm", api.Pending)
}

func (s *segments) connect(group string, more ...string) {
	s.t.Helper()
	s.must(append(strings.Fields("port connect vm --port-group "+group+" --device pv --mac 02:00:00:00:00:0a"),
		more...)...)
}

func TestS10_APortsOwnVLANEndsWhenItsDeviceGoesUnlessItsGroupKeepsIt(t *testing.T) {
	testkit.Long(t, "TestS10_OverrideEndsWithTheOwnersConnection has settings that end")
	for _, c := range []struct {
		group   string
		restart bool
		after   uint16
	}{{"ten", false, 10}, {"ten", true, 10}, {"keeps", false, 66}, {"keeps", true, 66}} {
		t.Run(fmt.Sprintf("%s restart=%v", c.group, c.restart), func(t *testing.T) {
			s := newSegments(t)
			s.connect(c.group, "--vlan", "66")
			s.speaksIn(66, s.plug(), "connected")
			s.unplug()
			if c.restart {
				s.kill(syscall.SIGKILL)
				s.start("--config", s.file("heddle.yaml", ownVLANs))
			}
			s.speaksIn(c.after, s.plug(), "the device is back")
			// The command that connected it, once more: it is a new connection with settings of its own, or nothing
			// new.
			s.connect(c.group, "--vlan", "66")
			s.connect(c.group, "--vlan", "66")
			s.unplug()
			s.connect(c.group, "--vlan", "66")
			s.speaksIn(66, s.plug(), "connected with the same command")
		})
	}
}

func TestS10_TheAgentMayBeAwayWhenTheDeviceGoes(t *testing.T) {
	s := newSegments(t)
	s.connect("ten", "--vlan", "66")
	s.speaksIn(66, s.plug(), "connected")
	s.kill(syscall.SIGKILL)
	s.ip("link del pv")
	vm := s.guest("pv", "02:00:00:00:00:0a", "192.0.2.10/24")
	s.start("--config", s.file("heddle.yaml", ownVLANs))
	s.awaitPort("vm", api.Up)
	s.speaksIn(10, vm, "another device of the name")
}

func TestS10_APortsOwnVLANEndsWithDisconnectUnlessItsGroupKeepsIt(t *testing.T) {
	testkit.Long(t, "TestS10_OverrideEndsWithTheOwnersConnection has settings that end")
	for _, c := range []struct {
		group, disconnect, again string
		after                    uint16
	}{
		{"ten", "", "ten", 10}, {"keeps", "", "keeps", 66}, {"keeps", "", "ten", 10}, {"keeps", "--reset", "keeps", 10},
		{"keeps", "", "keeps --vlan 77", 77},
	} {
		t.Run(c.group+c.disconnect+" "+c.again, func(t *testing.T) {
			s := newSegments(t)
			s.connect(c.group, "--vlan", "66")
			s.speaksIn(66, s.plug(), "connected")
			s.must(strings.Fields("port disconnect vm " + c.disconnect)...)
			s.kill(syscall.SIGKILL)
			s.start("--config", s.file("heddle.yaml", ownVLANs))
			s.ip("link del pv")
			again := strings.Fields(c.again)
			s.connect(again[0], again[1:]...)
			s.speaksIn(c.after, s.plug(), "connected again")
		})
	}
}

func TestS10_WhatAGroupKeepsOutlivesAConnectionToAnotherOne(t *testing.T) {
	s := newSegments(t)
	s.connect("keeps", "--vlan", "66")
	s.plug()
	s.must("port", "disconnect", "vm")
	s.connect("ten")
	if p := s.port("vm"); p.VLAN.String() != "access 10" {
		t.Errorf("connected to another group: %+v", p)
	}
	s.must("port", "disconnect", "vm")
	s.connect("keeps")
	if p := s.port("vm"); p.VLAN.String() != "access 66" {
		t.Errorf("connected again to the group that keeps it: %+v", p)
	}
}

func TestS10_ABlockSetByCommandIsKeptWithTheRestAndAConnectMaySetItAnew(t *testing.T) {
	s := newSegments(t)
	s.connect("keeps", "--vlan", "66")
	s.plug()
	s.must("port", "block", "vm")
	s.must("port", "disconnect", "vm")
	s.connect("keeps")
	if p := s.port("vm"); p.State != api.Blocked || p.VLAN.String() != "access 66" {
		t.Errorf("connected again: %+v", p)
	}
	s.must("port", "disconnect", "vm")
	s.connect("keeps", "--blocked=false")
	if p := s.port("vm"); p.State == api.Blocked || p.VLAN.String() != "access 66" {
		t.Errorf("connected with --blocked=false: %+v", p)
	}
}

func TestS10_SettingsThatFitNoMoreAreForgottenAndThePortIsConnected(t *testing.T) {
	s := newSegments(t)
	s.connect("keeps", "--vlan", "66")
	s.must("port", "disconnect", "vm")
	s.must("apply", "-f", s.file("next.yaml", strings.Replace(ownVLANs, "overrides: {vlan: true, resetAtDisconnect: "+
		"false}", "overrides: {resetAtDisconnect: false}", 1)))
	_, errs, status := s.heddle(strings.Fields("port connect vm --port-group keeps --device pv")...)
	if status != 0 || !strings.Contains(errs, "does not fit its port group any more") {
		t.Errorf("status %d: %s", status, errs)
	}
	if p := s.port("vm"); p.VLAN.String() != "access 10" {
		t.Errorf("%+v", p)
	}
}

func TestS10_WhatTheFileDeclaresForAPortStays(t *testing.T) {
	s := newSegments(t)
	for _, why := range []string{"declared", "the device is back"} {
		vm := s.guest("pfiled", "02:00:00:00:00:03", "192.0.2.3/24")
		s.awaitPort("filed", api.Up)
		f := broadcast([6]byte{2, 0, 0, 0, 0, 3}, 1)
		cable.Open(t, vm, "eth0").Send(f)
		s.sees.Expect(tagged(f, 66), why)
		s.ip("link del pfiled")
		s.awaitPort("filed", api.Pending)
	}
}
