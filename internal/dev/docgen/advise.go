package docgen

import (
	"fmt"
	"strings"

	"heddle/internal/diagnose/advise"
)

// The how-to of advise is written by hand but for its sample and its table, which stand between two comments each.
const (
	advisePath = "docs/how-to/faults/advise.md"
	rulesBegin = "<!-- rules: made from internal/diagnose/advise by internal/dev/docgen (make generate) -->\n"
	rulesEnd   = "<!-- end of rules -->\n"

	sampleBegin = "<!-- sample: made by the rules and by heddle advise, in internal/dev/docgen (make generate) -->\n"
	sampleEnd   = "<!-- end of sample -->\n"
)

// advisePage is the how-to with a sample of what is printed, and the table of the rules as they are.
func advisePage(root string) (string, error) {
	page, err := between(root, advisePath, rulesBegin, ruleTable(), rulesEnd)
	if err != nil {
		return "", err
	}
	sample, err := adviceSample()
	if err != nil {
		return "", err
	}
	return within(page, advisePath, sampleBegin, "```text\n"+sample+"```\n", sampleEnd)
}

func ruleTable() string {
	var t strings.Builder
	t.WriteString("| rule | level | what is misconfigured | what is measured | what comes of it " +
		"|\n|---|---|---|---|---|\n")
	for _, r := range advise.Rules() {
		fmt.Fprintf(&t, "| `%s` | %s | %s | %s | %s |\n", r.ID, r.Level, cell(r.About), cell(r.Sign), cell(r.Why))
	}
	return t.String()
}
