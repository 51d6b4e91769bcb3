package tree

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/cli/diagnose"
)

// wellKept returns an agent of a host without problems.
func wellKept() *standIn {
	s := withHistory("/etc/heddle/heddle.yaml")
	s.state = api.State{
		Agent: api.AgentInfo{Name: "default", Version: "1.2.3", PID: 7, Started: time.Now().Add(-90 * time.Minute),
			Config: "/etc/heddle/heddle.yaml"},
		Switches: []api.Switch{{Name: "lab", Ports: 3, PortsUp: 1, Uplinks: []string{"uplink1"}, UplinksUp: 1}},
		Uplinks:  []api.Uplink{{Switch: "lab", Name: "uplink1", State: api.Up}},
		Ports: []api.Port{{Name: "vm1/eth0", Switch: "lab", State: api.Up}, {Name: "vm2/eth0", State: api.Blocked,
			Reason: "blocked by command"},
			{Name: "vm3/eth0", State: api.Waiting, Wait: &api.Wait{}, Reason: "its guest is to arrive"}},
	}
	return s
}

func TestStatusOfAHealthyHost(t *testing.T) {
	out, errs, status := newConsole(t, wellKept()).run("status")
	for _, want := range []string{"agent       default, Heddle 1.2.3, for 1h30m (process 7)", "(version 4, applied ",
		"lab: 1 of 3 ports up, 1 of 1 uplinks up",
		"ports       3: 1 up, 1 blocked, 1 waiting\n", "uplinks     1: 1 up\n",
		"not in use  port vm2/eth0 is blocked: blocked by command\n", "all is well\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if status != 0 || errs != "" {
		t.Errorf("status %d: %s", status, errs)
	}
}

// A finding about the host itself is said where one looks, with what it is about.
func TestS115_StatusSaysThatAHostHasNoController(t *testing.T) {
	s := wellKept()
	s.advice.Findings = []api.Finding{{Rule: "no-controller", Level: api.FindingWrong,
		Sign: "this host has had no controller for 45s: no answer"}}
	out, _, status := newConsole(t, s).run("status")
	if status != 1 || !strings.Contains(out, "no-controller: this host has had no controller for 45s: no answer\n") ||
		strings.Contains(out, "all is well") {
		t.Errorf("status %d:\n%s", status, out)
	}
}

func TestStatusSaysWhatIsWrong(t *testing.T) {
	for name, spoil := range map[string]func(*standIn){
		"a port that is pending":           func(s *standIn) { s.state.Ports[0].State = api.Pending },
		"a port whose owner breaks policy": func(s *standIn) { s.state.Ports[0].Violation = "it uses another MAC" },
		"a guest that has not arrived":     func(s *standIn) { s.state.Ports[2].Wait.Overdue = true },
		"an uplink that is down":           func(s *standIn) { s.state.Uplinks[0].State = api.Down },
		"a tunnel that serves in part": func(s *standIn) {
			s.state.Uplinks[0].Reason, s.state.Uplinks[0].Tunnel = "endpoint b: there is no device eth7", &api.Tunnel{}
		},
		"an uplink that is up and not in full service": func(s *standIn) {
			s.state.Uplinks[0].Reason = "device eno1 has MTU 1400, below the 1500 of switch lab"
		},
		"a port that is up and not in full service": func(s *standIn) {
			s.state.Ports[0].Reason = "IPv6 is switched off on vmk0"
		},
		"a finding": func(s *standIn) {
			s.advice.Findings = []api.Finding{{Rule: "mtu", Level: api.FindingWrong, Switch: "lab"}}
		},
		"a warning": func(s *standIn) { s.state.Agent.Warnings = []string{"the table is small"} },
		"a collector that is away": func(s *standIn) {
			s.flows.status.Switches = []api.FlowSwitch{{Collectors: []api.FlowCollector{{State: "away"}}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := wellKept()
			spoil(s)
			out, _, status := newConsole(t, s).run("status")
			if status != cli.ExitFailure || !strings.HasSuffix(out, "something is wrong\n") {
				t.Errorf("status %d\n%s", status, out)
			}
			out, _, status = newConsole(t, s).run("status", "-o", "json")
			var got diagnose.Status
			if err := json.Unmarshal([]byte(out), &got); err != nil || got.Healthy || status != cli.ExitFailure {
				t.Errorf("JSON: %v, status %d\n%s", err, status, out)
			}
		})
	}
	s := wellKept()
	s.advice.Findings = []api.Finding{{Rule: "promiscuous", Level: api.FindingNote, Switch: "lab", Port: "vm1/eth0"}}
	if out, _, status := newConsole(t, s).run("status"); status != 0 ||
		!strings.Contains(out, "note  promiscuous: port vm1/eth0") {
		t.Errorf("a note: status %d\n%s", status, out)
	}
}
