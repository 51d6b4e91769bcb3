package docgen

import (
	"fmt"
	"strings"

	"heddle/internal/diagnose/advise"
)

// The how-to of advise is written by hand but for its table, which stands between two comments.
const (
	advisePath = "docs/how-to/advise.md"
	rulesBegin = "<!-- rules: made from internal/diagnose/advise by internal/dev/docgen (make generate) -->\n"
	rulesEnd   = "<!-- end of rules -->\n"
)

// advisePage is the how-to with the table of the rules as they are.
func advisePage(root string) (string, error) {
	return between(root, advisePath, rulesBegin, ruleTable(), rulesEnd)
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
