package tree

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec"
)

// unset lists the fields of a policy that have their zero value, except in vlan, which is one of several.
func unset(v reflect.Value, path string) []string {
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
		if v.Kind() != reflect.Struct {
			return nil
		}
	}
	if v.Kind() != reflect.Struct {
		if v.IsZero() {
			return []string{path}
		}
		return nil
	}
	var names []string
	for i := range v.NumField() {
		names = append(names, unset(v.Field(i), path+"."+v.Type().Field(i).Name)...)
	}
	return names
}

// TestS9_ThePortsOwnPolicyOnTheCommandLine: the command can set every field of a port that the file can.
func TestS9_ThePortsOwnPolicyOnTheCommandLine(t *testing.T) {
	s := furnished()
	c := newConsole(t, s)
	c.must(strings.Fields("port connect p --port-group g --trunk 0,10-20 --qinq --promiscuous accept --mac-changes " +
		"accept --forged-transmits reject" +
		" --loop-detection=false --guest-link-control lacp,lldp --mac-learning --mac-limit 0 --mac-limit-policy " +
		"allow --mac-ageing 5m --unicast-flooding=false" +
		" --teaming explicit --active u1,u2 --standby u3 --failback=false --notify-switches=false " +
		"--failure-detection beacon --blocked=false --ipfix --ipfix-observe egress" +
		" --storm-broadcast 1000 --storm-multicast 0 --storm-unknown-unicast 500 --storm-burst 250ms" +
		" --address-guard --guard-addresses 192.0.2.10,2001:db8::/64 --dhcp-server reject --router-advertisements " +
		"reject")...)
	p := s.asked[0].(api.Connect).Port
	if d := cmp.Diff(&spec.VLAN{Trunk: []string{"0", "10-20"}, Outer: "802.1ad"}, p.VLAN); d != "" {
		t.Error(d)
	}
	if *p.Security.MACLearning.Limit != 0 || *p.Security.MACLearning.UnicastFlooding ||
		!*p.Security.MACLearning.Enabled || *p.Blocked {
		t.Errorf("%+v", p.Policy)
	}
	p.VLAN = &spec.VLAN{None: true, Access: 1, Trunk: []string{"1"}, Outer: "802.1q"}
	if left := unset(reflect.ValueOf(p.Policy), "policy"); len(left) > 0 {
		t.Errorf("the command line cannot set %v", left)
	}
	for _, v := range []struct {
		flags string
		want  *spec.VLAN
	}{{"--vlan 100", &spec.VLAN{Access: 100}}, {"--vlan none", &spec.VLAN{None: true}}, {"", nil}} {
		s.asked = nil
		c.must(append(strings.Fields("port connect p --port-group g"), strings.Fields(v.flags)...)...)
		if d := cmp.Diff([]any{connected(spec.Port{Name: "p", PortGroup: "g", Policy: spec.Policy{VLAN: v.want}})},
			s.asked); d != "" {
			t.Errorf("%q: %s", v.flags, d)
		}
	}
}

func TestWrongInputOfConnectAndDisconnect(t *testing.T) {
	s := furnished()
	c := newConsole(t, s)
	for command, want := range map[string]string{
		"port connect p":                                         "--port-group",
		"port connect p --port-group g --vlan 0":                 "1–4094",
		"port connect p --port-group g --vlan 4095":              "1–4094",
		"port connect p --port-group g --vlan web":               "1–4094",
		"port connect p --port-group g --vlan 5 --trunk 1":       "exclude each other",
		"port connect p --port-group g --vlan 5 --qinq":          "--trunk",
		"port connect p --port-group g --trunk=":                 "needs VLANs",
		"port connect p --port-group g --mac-limit many":         "mac-limit",
		"port connect p q --port-group g":                        "takes PORT",
		"port connect p web":                                     "name the port group with --port-group web",
		"port move p nested":                                     "name the port group with --port-group nested",
		"port move p nested web":                                 "takes PORT; 3 given",
		"port disconnect":                                        "takes PORT",
		"port disconnect p --device tap0":                        "not both",
		"port connect p --port-group g --mac-learning=sometimes": "mac-learning",
	} {
		t.Run(command, func(t *testing.T) {
			if _, errs, status := c.run(strings.Fields(command)...); status != cli.ExitUsage ||
				!strings.Contains(errs, want) {
				t.Errorf("%s: status %d, %q; want %q", command, status, errs, want)
			}
		})
	}
	if len(s.asked) > 0 {
		t.Errorf("the agent was asked %v", s.asked)
	}
}

func TestScriptsMayRunTwice(t *testing.T) {
	s := furnished()
	c := newConsole(t, s)
	c.must("port", "connect", "p", "--port-group", "g", "--replace", "--qmp", "/run/q", "--qmp-nic", "net0", "--mac",
		"02:00:00:00:00:01")
	c.must("port", "disconnect", "--device", "tap0")
	want := []any{again{connected(spec.Port{Name: "p", PortGroup: "g", MAC: "02:00:00:00:00:01",
		Monitor: spec.Monitor{Socket: "/run/q", NIC: "net0"}})}, api.Disconnect{Device: "tap0"}}
	if d := cmp.Diff(want, s.asked); d != "" {
		t.Error(d)
	}
	s.err = api.NewError(api.NotFound, "no port")
	if _, _, status := c.run("port", "disconnect", "p"); status != cli.ExitFailure {
		t.Errorf("no such port: %d", status)
	}
	c.must("port", "disconnect", "p", "--if-connected")
	s.err = api.NewError(api.Invalid, "declared in the file")
	if _, _, status := c.run("port", "disconnect", "p", "--if-connected"); status != cli.ExitUsage {
		t.Errorf("a declared port: %d", status)
	}
}
