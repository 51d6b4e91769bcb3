package tree

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/cli"
	"heddle/internal/diagnose/explain"
)

func TestExplainShowsAWordInFull(t *testing.T) {
	c := newConsole(t, &standIn{})
	for word, want := range map[string]string{
		"half-open": `rule half-open
  An uplink sends and never receives.
  level:        wrong
  measured:     frames received and sent: none against 10 and more, in 5 s and more with --for
  comes of it:  one direction of the link is lost, and link state does not show it: what answers by
                this uplink never arrives
  fix:          Look at cable, optics and the physical port; failureDetection: beacon takes such an
                uplink out of use.
  command:      heddle advise
`,
		"forged-transmit": `reason forged-transmit
  The source address is not the port's own, and the port may not send with another.
  drops:        the whole frame: nobody gets it
  setting:      security.forgedTransmits
  counted:      IN DROPS of the port it came in by: heddle stats PORT; as it happens: heddle capture
                any --reason forged-transmit
  fix:          Set ` + "`security: {forgedTransmits: accept}`" + ` on the port group, for guests that are
                hypervisors, bridges or routers with a virtual MAC.
  command:      heddle apply -f FILE
  behaviour:    S1, S2 in reference/behaviour.md of the documentation
`,
		"teaming.failback": `field teaming.failback
  Whether traffic returns to an uplink that works again.
  values:       true, false: traffic returns to an uplink that works again
  default:      true
  set at:       switch, under defaults; port group; port, if the port group's overrides.teaming is
                true
  in the file:  teaming: {failback: false}
  flag:         --failback of heddle port connect
  in vSphere:   Failback
  command:      heddle port show PORT --policy
`,
	} {
		t.Run(word, func(t *testing.T) {
			out, errs, status := c.run("explain", word)
			if d := cmp.Diff(want, out); d != "" || status != cli.ExitOK || errs != "" {
				t.Errorf("status %d, %s (-want +got):\n%s", status, errs, d)
			}
		})
	}
}

// TestExplainTakesTheSpellingsOfAWord: a flag, several words, the last part of a path, and a kind.
func TestExplainTakesTheSpellingsOfAWord(t *testing.T) {
	c := newConsole(t, &standIn{})
	for line, want := range map[string][]string{
		"--forged-transmits":    {"field security.forgedTransmits", "rule forged-transmits"},
		"forged transmits":      {"field security.forgedTransmits", "rule forged-transmits"},
		"--vlan --kind field":   {"field vlan", "field switches[].portGroups[].overrides.vlan"},
		"mac-limit":             {"reason mac-limit", "field security.macLearning.limit", "rule mac-limit"},
		"mac-limit --kind rule": {"rule mac-limit"},
		"overrides.security":    {"field switches[].portGroups[].overrides.security"},
		"security.addressGuard": {"field security.addressGuard.enabled",
			"field security.addressGuard.addresses"},
		"--kind reason other-vlan":      {"reason other-vlan"},
		"checks.reversePathPromiscuous": {"field switches[].checks.reversePathPromiscuous"},
	} {
		t.Run(line, func(t *testing.T) {
			out, errs, status := c.run(append([]string{"explain", "-o", "json"}, strings.Fields(line)...)...)
			if status != cli.ExitOK {
				t.Fatal(errs)
			}
			var list []explain.Topic
			if err := json.Unmarshal([]byte(out), &list); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, x := range list {
				got = append(got, string(x.Kind)+" "+x.Name)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

func TestExplainListsWhereAWordMeansMuch(t *testing.T) {
	c := newConsole(t, &standIn{})
	out, _, _ := c.run("explain", "teaming")
	if !strings.HasPrefix(out, "FIELD  ") || strings.Count(out, "\nteaming.") != 6 ||
		!strings.HasSuffix(out, "\n\none of them in full: heddle explain NAME\n") {
		t.Errorf("a section: %s", out)
	}
	all, _, status := c.run("explain")
	for _, want := range []string{"REASON  ", "\nforged-transmit  ", "\n\nFIELD  ", "\nhost.macTable  ", "\n\nRULE  ",
		"\nhalf-open  "} {
		if !strings.Contains(all, want) || status != cli.ExitOK {
			t.Errorf("status %d, %q is missing in\n%s", status, want, all)
		}
	}
	if rules, _, _ := c.run("explain", "--kind", "rule"); !strings.HasPrefix(rules, "RULE ") ||
		strings.Contains(rules, "REASON") {
		t.Errorf("the rules alone: %s", rules)
	}
}

func TestExplainAnswersAWordThatMeansNothing(t *testing.T) {
	c := newConsole(t, &standIn{})
	for _, x := range []struct {
		line, want string
		status     int
	}{
		{"forged-transmt", "there is no reason, field or rule forged-transmt; did you mean forged-transmit?",
			cli.ExitFailure},
		{"quux", "there is no reason, field or rule quux; all of them: heddle explain", cli.ExitFailure},
		{"mac-limit --kind thing", "--kind thing: use reason, field or rule", cli.ExitUsage},
		{"mac-limit -o xml", `output format "xml"`, cli.ExitUsage},
	} {
		t.Run(x.line, func(t *testing.T) {
			out, errs, status := c.run(append([]string{"explain"}, strings.Fields(x.line)...)...)
			if status != x.status || !strings.Contains(errs, x.want) || out != "" {
				t.Errorf("status %d, %s%s, want %d, %s", status, out, errs, x.status, x.want)
			}
		})
	}
}

// TestExplainFitsATable: every explanation does, except for commands, which must stay whole to be copied.
func TestExplainFitsATable(t *testing.T) {
	c := newConsole(t, &standIn{})
	for _, name := range explain.Names("") {
		out, _, status := c.run("explain", name)
		if status != cli.ExitOK {
			t.Errorf("%s: status %d", name, status)
		}
		if strings.HasSuffix(out, "heddle explain NAME\n") {
			continue
		}
		for line := range strings.Lines(out) {
			if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > cli.TableWidth {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}

func TestCompletion_OfWordsToExplain(t *testing.T) {
	c := newConsole(t, &standIn{})
	for line, want := range map[string]string{
		"forged":              "forged-transmit\nforged-transmits\n:4\n",
		"security.macL":       "security.macLearning.ageing\nsecurity.macLearning.enabled\n",
		"--kind rule half":    "half-open\n:4\n",
		"--kind r":            "reason\nrule\n:4\n",
		"forged-transmit mac": ":4\n",
	} {
		t.Run(line, func(t *testing.T) {
			out, _, _ := c.run(append([]string{"__complete", "explain"}, strings.Fields(line)...)...)
			if !strings.HasPrefix(out, want) {
				t.Errorf("%q, want %q", out, want)
			}
		})
	}
}
