package clitest

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"heddle/internal/cli"
)

// LongName is a name as long as they come in a cluster, LongText a reason of many words.
const (
	LongName = "esx-0012.rack-17.datacentre-2.customer-acme.example"
	LongText = "a reason of some words a reason of some words a reason of some words a reason of some words " +
		"a reason of some words a reason of some words a reason of some words a reason of some words "
)

// Fits prints a table to a screen of 100 columns, and fails the test where a line is longer or a number is cut.
func Fits(t *testing.T, print func(d cli.Deps) error) {
	t.Helper()
	var out bytes.Buffer
	if err := print(cli.Deps{Stdout: cli.NewScreen(&out, cli.TableWidth)}); err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(l, "\n")); n > cli.TableWidth {
			t.Errorf("%d columns: %s", n, l)
		}
	}
	if cut := regexp.MustCompile(`(^|\s)[0-9.]+…`).FindString(out.String()); cut != "" {
		t.Errorf("a number is cut: %q\n%s", cut, out.String())
	}
}
