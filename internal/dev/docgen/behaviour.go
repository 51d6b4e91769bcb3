package docgen

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

const behaviourIntro = `# Behaviour

What Heddle promises, as numbered, testable statements, and which tests hold it to them. *Implemented* means that the product
does it and at least one test names the statement; *in the model* means that so far only the specification in plain Go does.
The rings of tests: **pure Go** needs no kernel; **kernel** runs the dataplane's program on single frames; **namespaces** sends
real traffic through real devices. The exact frame rules behind the statements are in [frame-rules.md](frame-rules.md).

A test that covers statement 14 is called ` + "`TestS14_…`" + `, and one that holds a time against a bound
` + "`TestTime_S14_…`" + `; this page finds it by that name.

`

// behaviourPage lists every statement and decision with the tests that cover it.
func behaviourPage(root string) (string, error) {
	s, err := readStatements(root)
	if err != nil {
		return "", err
	}
	tests, err := findTests(root)
	if err != nil {
		return "", err
	}
	by := map[string][]coveringTest{}
	for _, t := range tests {
		for _, n := range t.of {
			by[n] = append(by[n], t)
		}
	}
	if err := checkNumbers(s, by); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(generated("docs/reference/statements.yaml and the names of the tests") + behaviourIntro)
	writeTotals(&b, s, by)
	writeStatements(&b, s, by)
	b.WriteString("\n## Decisions\n\nWhere Linux differs from ESXi, or ESXi is silent.\n\n")
	b.WriteString("| # | decision | tests |\n|---|---|---|\n")
	for _, d := range s.Decisions {
		id := fmt.Sprintf("D%d", d.Number)
		fmt.Fprintf(&b, "| %s | %s | %s |\n", id, cell(d.Text), links(by[id], ""))
	}
	return b.String(), nil
}

// checkNumbers refuses tests that name a statement or decision which does not exist.
func checkNumbers(s *statements, by map[string][]coveringTest) error {
	known := map[string]bool{}
	for _, st := range s.Statements {
		known[fmt.Sprintf("S%d", st.Number)] = true
	}
	for _, d := range s.Decisions {
		known[fmt.Sprintf("D%d", d.Number)] = true
	}
	for n, tests := range by {
		if !known[n] {
			return fmt.Errorf("%s:%d: %s names %s, which docs/reference/statements.yaml does not have", tests[0].file,
				tests[0].line, tests[0].name, n)
		}
	}
	return nil
}

// writeTotals counts, for each area in the order of its first statement, how many statements are implemented.
func writeTotals(b *strings.Builder, s *statements, by map[string][]coveringTest) {
	var areas []string
	total, done := map[string]int{}, map[string]int{}
	for _, st := range s.Statements {
		if total[st.Area] == 0 {
			areas = append(areas, st.Area)
		}
		total[st.Area]++
		if implemented(by[fmt.Sprintf("S%d", st.Number)]) {
			done[st.Area]++
		}
	}
	b.WriteString("| area | implemented |\n|---|---|\n")
	for _, a := range areas {
		fmt.Fprintf(b, "| %s | %d of %d |\n", a, done[a], total[a])
	}
}

func writeStatements(b *strings.Builder, s *statements, by map[string][]coveringTest) {
	section := ""
	for _, st := range s.Statements {
		if st.Section != section {
			section = st.Section
			fmt.Fprintf(b,
				"\n## %s\n\n| # | statement | | pure Go | kernel | namespaces |\n|---|---|---|---|---|---|\n", section)
		}
		id := fmt.Sprintf("S%d", st.Number)
		state := "implemented"
		switch {
		case len(by[id]) == 0:
			state = "not yet: " + st.Area
		case !implemented(by[id]):
			state = "in the model"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", id, cell(st.Text), state,
			links(by[id], pure), links(by[id], kernel), links(by[id], namespaces))
	}
}

// implemented reports whether one of the tests is about the product and not about its model alone.
func implemented(tests []coveringTest) bool {
	return slices.ContainsFunc(tests, func(t coveringTest) bool { return path.Dir(t.file) != "internal/model" })
}

// links are links to the tests of one ring, or of all when it is empty. They name the file and not the line, which
// would make the page stale with every edit.
func links(tests []coveringTest, r ring) string {
	var out []string
	for _, t := range tests {
		if r != "" && t.ring != r {
			continue
		}
		short := covers.ReplaceAllString(t.name, "")
		out = append(out, fmt.Sprintf("[%s](../../%s \"%s in %s\")", short, t.file, t.name, path.Base(t.file)))
	}
	return strings.Join(out, ", ")
}

// cell makes text fit a table's cell.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}
