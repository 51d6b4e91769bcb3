package tree

import (
	"context"
	"encoding/json"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/host/reach"
	"heddle/internal/observe/undone"
	"heddle/internal/plan"
)

func trial(state api.TrialState) *api.Trial {
	return &api.Trial{State: state, Change: "apply heddle.yaml",
		AtRisk: []reach.Risk{{Device: "vmk0", ID: plan.PortID{Switch: "lab", Name: "vmk0"},
			What: []string{"vlan: none → access 66"}}},
		Asked: []reach.Ask{{Device: "vmk0", Kind: reach.Gateway, Address: netip.MustParseAddr("192.0.2.1")}}}
}

func TestS81_ApplySaysHowTheChangeIsTried(t *testing.T) {
	const file = "switches: [{name: lab}]\n"
	for _, c := range []struct {
		state     api.TrialState
		reason    string
		asked     bool
		wantTexts []string
	}{
		{api.TrialPlanned, "", true, []string{"heddle: warning: it concerns the way", "vmk0: vlan: none → access 66",
			"it would be tried", "gateway 192.0.2.1 by vmk0"}},
		{api.TrialPlanned, "nobody answers: give --confirm-within DURATION", false,
			[]string{"it would be refused", "--confirm-within"}},
		{api.TrialKept, "", true, []string{"it stays", "gateway 192.0.2.1 by vmk0"}},
		{api.TrialConfirm, "", false, []string{"confirm within 1m", "heddle confirm"}},
	} {
		v := trial(c.state)
		v.Reason, v.Deadline = c.reason, soon()
		if c.reason != "" {
			v.ReasonCode = undone.NobodyToAsk
		}
		if !c.asked {
			v.Asked = nil
		}
		s := &standIn{applied: api.Applied{Trial: v}}
		console := newConsole(t, s)
		console.stdin = file
		out, errs, status := console.run("apply", "-f", "-", "--confirm-within", "90s")
		for _, want := range c.wantTexts {
			if status != 0 || !strings.Contains(errs, want) {
				t.Errorf("%s: status %d, %q is missing:\n%s%s", c.state, status, want, out, errs)
			}
		}
		if q := s.asked[len(s.asked)-1].(api.Apply); q.ConfirmWithin != 90*time.Second {
			t.Errorf("asked %+v", q)
		}
	}
}

func TestS81_AChangeThatWentBackIsStatus1AndInTheJSON(t *testing.T) {
	went := api.NewError(api.Reverted, "it was taken back", "gateway 192.0.2.1 did not answer")
	went.Trial = trial(api.TrialReverted)
	c := newConsole(t, &standIn{err: went})
	for _, args := range [][]string{{"apply", "-f", "-"}, {"port", "block", "vmk0"},
		{"port", "move", "vmk0", "--port-group", "g"},
		{"port", "connect", "vmk0", "--port-group", "g", "--role", "host", "--replace"}} {
		c.stdin = "switches: [{name: lab}]\n"
		out, errs, status := c.run(append(args, "-o", "json")...)
		var got api.Applied
		if err := json.Unmarshal([]byte(out), &got); err != nil || got.Trial == nil ||
			got.Trial.State != api.TrialReverted {
			t.Errorf("%v: %v %s", args, err, out)
		}
		if status != cli.ExitFailure || !strings.Contains(errs,
			"heddle: it was taken back\nheddle: gateway 192.0.2.1 did not answer\n") {
			t.Errorf("%v: status %d, %s", args, status, errs)
		}
	}
	if out, _, status := c.run("port", "disconnect", "vmk0"); status != cli.ExitFailure || out != "" {
		t.Errorf("disconnect: status %d, %s", status, out)
	}
}

func TestS81_AConnectionIsTried(t *testing.T) {
	v := trial(api.TrialConfirm)
	v.Deadline = soon()
	for _, how := range []string{"--replace=false", "--replace", "--incoming"} {
		s := &standIn{applied: api.Applied{Trial: v}}
		_, errs, status := newConsole(t, s).run("port", "connect", "vmk0", "--port-group", "g", "--role", "host", how,
			"--confirm-within", "90s")
		if status != 0 || !regexp.MustCompile(
			`confirm within 1m\d+s, or everything goes back: heddle confirm`).MatchString(errs) {
			t.Errorf("%s: status %d: %s", how, status, errs)
		}
		var q api.Connect
		switch asked := s.asked[len(s.asked)-1].(type) {
		case again:
			q = asked.Connect
		case arriving:
			q = asked.Connect
		case api.Connect:
			q = asked
		}
		if q.Name != "vmk0" || q.ConfirmWithin != 90*time.Second {
			t.Errorf("%s: asked %+v", how, q)
		}
	}
}

// Ctrl-C while the agent asks whether the host is still reached: the command says what happens to its change.
func TestS81_ACommandThatIsInterruptedSaysThatTheAgentGoesOn(t *testing.T) {
	v := trial(api.TrialAsking)
	v.Change, v.Deadline = "port connect vmk0", soon()
	for _, c := range []struct {
		state api.TrialState
		want  string
	}{
		{api.TrialAsking, "heddle: interrupted; the agent goes on: \"port connect vmk0\" goes back by itself in " +
			"1m[0-9]+s " +
			"unless these answer: gateway 192.0.2.1 by vmk0"},
		{api.TrialKept, "interrupted before the agent at .* has answered"},
	} {
		v.State = c.state
		ctx, interrupt := context.WithCancel(t.Context())
		console := newConsole(t, &standIn{trial: v, hang: interrupt})
		out, errs, status := console.runIn(ctx, "port", "connect", "vmk0", "--port-group", "g", "--role", "host",
			"--replace")
		if status != cli.ExitFailure || out != "" || !regexp.MustCompile(c.want).MatchString(errs) {
			t.Errorf("%s: status %d: %s%s", c.state, status, out, errs)
		}
		interrupt()
	}
}

func TestS81_ConfirmKeepsTheChange(t *testing.T) {
	s := &standIn{trial: trial(api.TrialKept)}
	if out := newConsole(t, s).must("confirm"); out != "apply heddle.yaml stays\n" {
		t.Errorf("%q", out)
	}
	if out := newConsole(t, s).must("confirm", "-o", "json"); !strings.Contains(out, `"state": "kept"`) {
		t.Errorf("%s", out)
	}
}

// soon returns a deadline more than a minute away, also at the end of a test.
func soon() time.Time { return time.Now().Add(110 * time.Second) }
