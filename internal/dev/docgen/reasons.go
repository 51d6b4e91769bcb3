package docgen

import (
	"fmt"
	"strings"

	"heddle/internal/diagnose/reasons"
)

const reasonsIntro = `# Reasons

Every frame received from a port is delivered or dropped with exactly one reason; every copy considered for a receiver is
handed over or refused with one reason. ` + "`heddle stats`" +
	` counts them under these names. The numbers are the ones in the kernel's
tables; they never change. When each applies, exactly: [frame-rules.md](frame-rules.md).

| # | reason | about | meaning | caused by |
|---|---|---|---|---|
`

// reasonsPage explains every reason.
func reasonsPage() string {
	var b strings.Builder
	b.WriteString(generated("internal/diagnose/reasons and bpf/core/reasons.h") + reasonsIntro)
	for _, r := range reasons.Reasons() {
		fmt.Fprintf(&b, "| %d | [%s](#%s) | %s | %s | %s |\n", r.Reason, r.Name(), r.Name(), r.About, cell(r.Meaning),
			cell(r.Policy))
	}
	b.WriteString("\n## What to do\n\nFILE is the host's configuration file; PORT is a port's name; commands that " +
		"only show\n" +
		"something take an uplink's, too. An uplink is blocked and unblocked by its `blocked` in FILE.\n")
	for _, r := range reasons.Reasons() {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n", r.Name(), r.Meaning)
		fmt.Fprintf(&b, "- caused by: %s\n- to change it: %s\n- command: `%s`\n- behaviour: %s\n",
			r.Policy, r.Change, r.Command, strings.Join(r.Statements, ", "))
	}
	return b.String()
}
