package tree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/cli"
)

func TestAnExperimentWritesItsReport(t *testing.T) {
	c := newConsole(t, &standIn{})
	file := filepath.Join(c.dir, "report.html")
	stdout, stderr, status := c.run("lab", "run", "nested-mac-learning", "--simulate", "--row",
		"promiscuous-dual,mac-learning-dual", "--report", file)
	if status != cli.ExitOK || stderr != "" || !strings.Contains(stdout, "mac-learning-dual") {
		t.Fatalf("status %d: %s%s", status, stdout, stderr)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"<h1>Nested MAC learning</h1>", "traffic between two nested hosts", `<th class="words">promiscuous-dual</th>`,
		`<th class="words">mac-learning-dual</th>`, "<svg",
		"<code>heddle lab run nested-mac-learning --row=promiscuous-dual,mac-learning-dual --simulate</code>",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the report lacks %s", want)
		}
	}
	if strings.Contains(string(text), "two-hosts-promiscuous") {
		t.Error("the report holds a row that was not chosen")
	}
}

func TestAReportThatCannotBeWrittenIsToldBeforeAnythingRuns(t *testing.T) {
	c := newConsole(t, &standIn{})
	for _, k := range []struct{ path, says string }{
		{c.dir, "is a directory"}, {filepath.Join(c.dir, "none", "r.html"), "no such file or directory"},
		{"", "is empty"}, {"/dev/null", "no ordinary file"},
	} {
		for _, run := range [][]string{{"nested-mac-learning", "--simulate"}, {"failover"}, {"live-change"},
			{"hostile-neighbour"}} {
			stdout, stderr, status := c.run(append(append([]string{"lab", "run"}, run...), "--report", k.path)...)
			if status != cli.ExitUsage || stdout != "" || !strings.Contains(stderr, k.says) ||
				strings.Count(stderr, "\n") != 1 {
				t.Errorf("%v --report %q: status %d, %q and %q, want one line with %q", run, k.path, status, stdout,
					stderr, k.says)
			}
		}
	}
}
