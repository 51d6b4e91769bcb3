package cli

import (
	"heddle/internal/diagnose"
	"strings"
	"testing"
	"unicode/utf8"

	"heddle/internal/api"
)

func adviceOfTwo() api.Advice {
	return api.Advice{MeasuredSeconds: 10.04, Rules: 22, Ports: 12, Uplinks: 2, More: map[string]int{"guest-tags": 3},
		Findings: []api.Finding{
			{Rule: "forged-transmits", Level: api.FindingWrong, Switch: "lab", Port: "vm1/eth0",
				Sign: strings.Repeat("measured words ", 12), Why: "it is lost", Change: "Let it.",
				Edit: &diagnose.Edit{File: "/etc/heddle.yaml", Switch: "lab", Kind: diagnose.EditGroup, Name: "web",
					Set: "security: {forgedTransmits: accept}"}, Command: "heddle apply -f /etc/heddle.yaml"},
			{Rule: "half-open", Level: api.FindingNote, Switch: "lab", Sign: "none", Why: "so", Change: "Do.",
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
		"\n  command:  heddle apply -f /etc/heddle.yaml\n", "note  half-open: switch lab\n",
		"and 3 more of guest-tags\n", "2 findings. Checked 22 rules on 12 ports and 2 uplinks.\nThe counters are " +
			"those of the last 10s.\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for line := range strings.Lines(out) {
		if utf8.RuneCountInString(line) > tableWidth+1 {
			t.Errorf("a line of %d columns: %s", utf8.RuneCountInString(line)-1, line)
		}
	}
	if status != ExitFailure {
		t.Errorf("status %d, want %d", status, ExitFailure)
	}
	if q, ok := s.asked[0].(api.AdviseRequest); !ok || q.For.Seconds() != 10 {
		t.Errorf("asked %+v", s.asked)
	}
	if strings.Contains(out, "\x1b") {
		t.Error("colours where there is no terminal")
	}
	c.colour = true
	if out, _, _ := c.run("advise"); !strings.HasPrefix(out, red+"wrong"+plain+"  forged") ||
		!strings.Contains(out, "\n"+yellow+"note"+plain+"  half-open") {
		t.Errorf("on a terminal: %q", out)
	}
	c.colour = false
	s.advice.Findings = s.advice.Findings[1:]
	if _, _, status := c.run("advise"); status != ExitOK {
		t.Errorf("status %d with a note alone", status)
	}
	s.advice = api.Advice{Rules: 22}
	if out, _, status := c.run("advise"); status != ExitOK || out != "No problems found. Checked 22 rules on 0 ports "+
		"and 0 uplinks.\nThe counters are those since each port was connected.\n" {
		t.Errorf("status %d, %q", status, out)
	}
	if _, errs, status := c.run("advise", "--for", "2h"); status != ExitUsage ||
		!strings.Contains(errs, "--for 2h0m0s") {
		t.Errorf("status %d, %q", status, errs)
	}
}
