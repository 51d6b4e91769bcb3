package tree

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/diagnose"
)

func adviceOfTwo() api.Advice {
	return api.Advice{MeasuredSeconds: 10.04, Older: 2, SinceSeconds: 600, Rules: 22, Ports: 12,
		Uplinks: 2, More: map[string]int{"guest-tags": 3},
		Findings: []api.Finding{
			{Rule: "forged-transmits", Level: api.FindingWrong, Switch: "lab", Port: "vm1/eth0",
				FirstSeen: time.Now().Add(-72 * time.Hour), LastSeen: time.Now().Add(-3 * time.Second),
				Sign: strings.Repeat("measured words ", 12), Why: "it is lost", Change: "Let it.",
				Edit: &diagnose.Edit{File: "/etc/heddle.yaml", Switch: "lab", Kind: diagnose.EditGroup, Name: "web",
					Set: "security: {forgedTransmits: accept}"}, Command: "heddle apply -f /etc/heddle.yaml"},
			{Rule: "half-open", Level: api.FindingNote, Switch: "lab", Now: true, LastSeen: time.Now(),
				Sign: "none", Why: "so", Change: "Do.",
				Command: "heddle uplink list"},
		}}
}

func TestAdvise_FindingsAreWrappedAndSetTheStatus(t *testing.T) {
	s := &standIn{advice: adviceOfTwo()}
	c := newConsole(t, s)
	out, _, status := c.run("advise", "--for", "10s")
	for _, want := range []string{"wrong  forged-transmits: port vm1/eth0 of switch lab\n  measured: measured words",
		"\n  edit:     /etc/heddle.yaml, port group web of switch lab:\n              security: {forgedTransmits: " +
			"accept}\n",
		"\n  command:  heddle apply -f /etc/heddle.yaml\n", " (3s ago), first 2", "\n  seen:     now\n",
		"\n2 older findings were not seen in the last 10m; heddle advise --all shows them.\n",
		"note  half-open: switch lab\n",
		"and 3 more of guest-tags\n", "2 findings. Checked 22 rules on 12 ports and 2 uplinks.\nThe counters are " +
			"those of the last 10s.\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for line := range strings.Lines(out) {
		if utf8.RuneCountInString(line) > cli.TableWidth+1 {
			t.Errorf("a line of %d columns: %s", utf8.RuneCountInString(line)-1, line)
		}
	}
	if status != cli.ExitFailure {
		t.Errorf("status %d, want %d", status, cli.ExitFailure)
	}
	if q, ok := s.asked[0].(api.AdviseRequest); !ok || q.For.Seconds() != 10 {
		t.Errorf("asked %+v", s.asked)
	}
	if strings.Contains(out, "\x1b") {
		t.Error("colours where there is no terminal")
	}
	c.colour = true
	if out, _, _ := c.run("advise"); !strings.HasPrefix(out, cli.Red+"wrong"+cli.Plain+"  forged") ||
		!strings.Contains(out, "\n"+cli.Yellow+"note"+cli.Plain+"  half-open") {
		t.Errorf("on a terminal: %q", out)
	}
	c.colour = false
	s.advice.Findings = s.advice.Findings[1:]
	if _, _, status := c.run("advise"); status != cli.ExitOK {
		t.Errorf("status %d with a note alone", status)
	}
	s.advice = api.Advice{Rules: 22}
	if out, _, status := c.run("advise"); status != cli.ExitOK ||
		out != "No problems found. Checked 22 rules on 0 ports "+
			"and 0 uplinks.\nThe counters are those since each port was connected.\n" {
		t.Errorf("status %d, %q", status, out)
	}
	if _, errs, status := c.run("advise", "--for", "2h"); status != cli.ExitUsage ||
		!strings.Contains(errs, "--for 2h0m0s") {
		t.Errorf("status %d, %q", status, errs)
	}
}

func TestAdvise_TimesThatContradictEachOther(t *testing.T) {
	c := newConsole(t, &standIn{})
	for want, args := range map[string][]string{
		"--since -1s":       {"--since", "-1s"},
		"leave out --since": {"--all", "--since", "1h"},
		"and --all":         {"--all", "--for", "1s"},
		"--since and --all": {"--since", "1h", "--for", "1s"},
	} {
		t.Run(want, func(t *testing.T) {
			_, errs, status := c.run(append([]string{"advise"}, args...)...)
			if status != cli.ExitUsage || !strings.Contains(errs, want) {
				t.Errorf("status %d: %s", status, errs)
			}
		})
	}
}

func TestAdvise_AsksForAnotherTime(t *testing.T) {
	s := &standIn{}
	c := newConsole(t, s)
	c.run("advise")
	c.run("advise", "--since", "90")
	c.run("advise", "--all")
	want := []any{api.AdviseRequest{Since: api.AdviseSince}, api.AdviseRequest{Since: 90 * time.Second},
		api.AdviseRequest{Since: api.AdviseSince, All: true}}
	if d := cmp.Diff(want, s.asked); d != "" {
		t.Error(d)
	}
}
