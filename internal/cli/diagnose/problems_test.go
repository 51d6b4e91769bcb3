package diagnose

import (
	"strings"
	"testing"

	"heddle/internal/cli"
	"heddle/internal/diagnose/doctor"
)

// A port in a state without a reason, such as one blocked by command, has one line.
func TestStatusWithoutAReasonHasOneLine(t *testing.T) {
	s := &Status{Problems: []Problem{{Object: "port vm3/eth0", State: "blocked", Harmless: true},
		{Object: "port vm4/eth0", State: "down", Text: "there is no device tap4"}}}
	var b strings.Builder
	s.writeProblems(cli.Deps{}, &b)
	want := "problems    port vm3/eth0 is blocked\n            port vm4/eth0 is down: there is no device tap4\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestDoctor_EndsWithASummary(t *testing.T) {
	for want, found := range map[string][]doctor.Finding{
		"0 wrong, 0 notes": {{Level: doctor.OK}},
		"2 wrong, 1 note":  {{Level: doctor.Wrong}, {Level: doctor.Note}, {Level: doctor.Wrong}},
		"0 wrong, 2 notes, 1 could not be looked at": {{Level: doctor.Note}, {Level: doctor.Unknown},
			{Level: doctor.Note}},
	} {
		t.Run(want, func(t *testing.T) {
			if got := doctorSummary(found); got != want {
				t.Errorf("%q", got)
			}
		})
	}
}
