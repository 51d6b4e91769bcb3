package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Widths of help texts, in characters.
const (
	plainHelpWidth = 80 // where there is no terminal
	leastHelpWidth = 60 // narrower, the texts beside flags have too little space
)

// terminalWidth is the width of the terminal that f is, or 0 when it is none.
func terminalWidth(f *os.File) int {
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// wrapHelp makes the help of root and its commands fit the width of the terminal, 0 for none.
func wrapHelp(root *cobra.Command, width int) {
	if width <= 0 {
		width = plainHelpWidth
	}
	width = max(width, leastHelpWidth)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages ", fmt.Sprintf(".FlagUsagesWrapped %d ",
		width)))
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		text := c.Long
		if text == "" {
			text = c.Short
		}
		out := c.OutOrStdout()
		if text = strings.TrimSpace(text); text != "" {
			fmt.Fprintf(out, "%s\n\n", reflow(text, width))
		}
		if c.Runnable() || c.HasSubCommands() {
			fmt.Fprint(out, c.UsageString())
		}
	})
}

// reflow wraps each paragraph of a text. An indented line is left as it is: it is a command or an example.
func reflow(text string, width int) string {
	var lines, paragraph []string
	flush := func() {
		if len(paragraph) > 0 {
			lines, paragraph = append(lines, wrap(strings.Join(paragraph, " "), width)...), nil
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case strings.TrimSpace(line) == "":
			flush()
			lines = append(lines, "")
		case line[0] == ' ' || line[0] == '\t':
			flush()
			lines = append(lines, line)
		default:
			paragraph = append(paragraph, line)
		}
	}
	flush()
	return strings.Join(lines, "\n")
}
