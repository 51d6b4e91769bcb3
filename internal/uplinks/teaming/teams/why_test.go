package teams

import (
	"strings"
	"testing"

	"heddle/internal/observe/event"
	"heddle/internal/plan/problem"
)

func TestEveryReasonOfAMoveHasATextOfItsOwn(t *testing.T) {
	texts := map[string]bool{}
	say := func(text string) {
		if text == "" || strings.HasSuffix(text, ": ") || texts[text] {
			t.Errorf("%q is no text, or of two reasons", text)
		}
		texts[text] = true
	}
	causes := map[event.FailoverCause]bool{}
	for k := range kinds {
		if c := k.Cause(); c == "" || causes[c] {
			t.Errorf("kind %d has the cause %q, which is none or of two", k, c)
		}
		causes[k.Cause()] = true
		if k != NoLink {
			say(Why{Kind: k, Entry: "u1", Problem: problem.Of(problem.BeaconsDeaf)}.Text())
		}
	}
	for l := range links {
		say(Why{Kind: NoLink, Entry: "u1", Link: l, Device: "eth0"}.Text())
	}
}
