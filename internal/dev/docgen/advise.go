package docgen

import (
	"fmt"
	"os"
	"path/filepath"
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
	b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(advisePath)))
	if err != nil {
		return "", fmt.Errorf("read a page with a generated table: %w", err)
	}
	before, rest, ok := strings.Cut(string(b), rulesBegin)
	_, after, ends := strings.Cut(rest, rulesEnd)
	if !ok || !ends {
		return "", fmt.Errorf("%s: the comments that hold the table of rules are not there", advisePath)
	}
	return before + rulesBegin + ruleTable() + rulesEnd + after, nil
}

func ruleTable() string {
	var t strings.Builder
	t.WriteString("| rule | level | what is misconfigured | what is measured | what comes of it |\n|---|---|---|---|---|\n")
	for _, r := range advise.Rules() {
		fmt.Fprintf(&t, "| `%s` | %s | %s | %s | %s |\n", r.ID, r.Level, cell(r.About), cell(r.Sign), cell(r.Why))
	}
	return t.String()
}
