package tree

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/cli"
)

// Widths of help texts, in characters.
const (
	plainHelpWidth = 80 // without a terminal
	leastHelpWidth = 60 // narrower, the texts beside flags have too little space
)

// wrapHelp wraps the help of root and its commands to the width of the terminal, 0 for none.
func wrapHelp(root *cobra.Command, width int) {
	if width <= 0 {
		width = plainHelpWidth
	}
	width = max(width, leastHelpWidth)
	root.SetUsageFunc(func(c *cobra.Command) error {
		_, err := fmt.Fprint(c.OutOrStderr(), usage(c, width))
		return err
	})
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

// usage returns the part of a command's help after its text: how to call it, examples, subcommands and flags. Cobra
// would use a template; but with text/template in the program the linker must keep every exported method of every type,
// since a template could call it, and the agent would need 4 MB more.
func usage(c *cobra.Command, width int) string {
	var b strings.Builder
	part := func(title, text string) {
		if text = strings.TrimRight(text, " \n"); text != "" {
			fmt.Fprintf(&b, "\n\n%s\n%s", title, text)
		}
	}
	b.WriteString("Usage:")
	if c.Runnable() {
		b.WriteString("\n  " + c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		b.WriteString("\n  " + c.CommandPath() + " [command]")
	}
	if len(c.Aliases) > 0 {
		part("Aliases:", "  "+c.NameAndAliases())
	}
	part("Examples:", c.Example)
	if c.HasAvailableSubCommands() {
		for _, g := range c.Groups() {
			part(g.Title, subcommands(c, g.ID))
		}
		title := "Available Commands:"
		if len(c.Groups()) > 0 {
			title = "Additional Commands:"
		}
		part(title, subcommands(c, ""))
	}
	part("Flags:", c.LocalFlags().FlagUsagesWrapped(width))
	part("Global Flags:", c.InheritedFlags().FlagUsagesWrapped(width))
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n\nUse \"%s [command] --help\" for more information about a command.", c.CommandPath())
	}
	return b.String() + "\n"
}

// subcommands lists the subcommands of a group that are not hidden, one line each.
func subcommands(c *cobra.Command, group string) string {
	var b strings.Builder
	for _, s := range c.Commands() {
		if s.GroupID == group && (s.IsAvailableCommand() || s.Name() == "help") {
			fmt.Fprintf(&b, "  %-*s %s\n", s.NamePadding(), s.Name(), s.Short)
		}
	}
	return b.String()
}

// reflow wraps each paragraph of a text. An indented line is left as it is: it is a command or an example.
func reflow(text string, width int) string {
	var lines, paragraph []string
	flush := func() {
		if len(paragraph) > 0 {
			lines, paragraph = append(lines, cli.Wrap(strings.Join(paragraph, " "), width)...), nil
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
