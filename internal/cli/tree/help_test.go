package tree

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"heddle/internal/cli"
)

// helpAt returns the help of a command, by its path, on a terminal of that width.
func helpAt(t *testing.T, width int, path ...string) string {
	t.Helper()
	var out bytes.Buffer
	root := NewRoot(cli.Deps{Stdin: strings.NewReader(""), Stdout: &out, Stderr: io.Discard, Width: width,
		Getenv: func(string) string { return "" }})
	root.SetArgs(append(path, "--help"))
	if err := root.Execute(); err != nil {
		t.Fatalf("help of %v: %v", path, err)
	}
	return out.String()
}

// eachCommand visits the program's own commands, with their paths below the root.
func eachCommand(c *cobra.Command, path []string, visit func(path []string, c *cobra.Command)) {
	if c.Name() == "completion" || c.Name() == "help" {
		return
	}
	visit(path, c)
	for _, sub := range c.Commands() {
		eachCommand(sub, append(path[:len(path):len(path)], sub.Name()), visit)
	}
}

// TestHelp_FitsTheTerminal: no line of any help is longer than the terminal is wide, except for examples, which can't
// be broken.
func TestHelp_FitsTheTerminal(t *testing.T) {
	for given, width := range map[int]int{0: 80, 80: 80, 100: 100, 132: 132} {
		tree := NewRoot(cli.Deps{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard,
			Getenv: func(string) string { return "" }})
		eachCommand(tree, nil, func(path []string, c *cobra.Command) {
			inExample := false
			for line := range strings.SplitSeq(helpAt(t, given, path...), "\n") {
				if strings.HasSuffix(line, ":") && !strings.HasPrefix(line, " ") {
					inExample = line == "Examples:"
				}
				if n := utf8.RuneCountInString(line); n > width && !inExample {
					t.Errorf("%s, width %d: a line of %d: %q", c.CommandPath(), given, n, line)
				}
			}
		})
	}
}

func TestHelp_WrapsByTheWidthThereIs(t *testing.T) {
	narrow, wide := helpAt(t, 80, "apply"), helpAt(t, 200, "apply")
	if strings.Count(narrow, "\n") <= strings.Count(wide, "\n") {
		t.Errorf("80 columns give %d lines, 200 columns %d", strings.Count(narrow, "\n"), strings.Count(wide, "\n"))
	}
	if strings.Join(strings.Fields(narrow), " ") != strings.Join(strings.Fields(wide), " ") {
		t.Error("the words differ")
	}
}

func TestReflow(t *testing.T) {
	text := "one two\nthree\n\n  heddle port list   # as it is\nfour five"
	if got, want := reflow(text, 9), "one two\nthree\n\n  heddle port list   # as it is\nfour five"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := reflow(text, 40), "one two three\n\n  heddle port list   # as it is\nfour five"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
