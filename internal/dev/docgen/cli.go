package docgen

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const cliIntro = `# Commands

Exit status: 0 done; 1 something went wrong while running; 2 the command line or the configuration is wrong, and nothing was
changed. ` + "`heddle COMMAND --help`" + ` prints the same texts.

`

// cliPage lists every command of the program with its flags.
func cliPage() string {
	root := commandTree()
	var b strings.Builder
	b.WriteString(generated("the command tree of internal/cli") + cliIntro)
	b.WriteString("| command | |\n|---|---|\n")
	walk(root, func(c *cobra.Command) {
		if c.Runnable() && c != root {
			fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", c.CommandPath(), anchor(c), cell(c.Short))
		}
	})
	walk(root, func(c *cobra.Command) {
		if c.Runnable() && c != root && !generatedHelp(c) {
			writeCommand(&b, c)
		}
	})
	return b.String()
}

// generatedHelp reports whether a command's text comes from the library: shell completion, a page for each shell.
func generatedHelp(c *cobra.Command) bool {
	return c.Parent() != nil && c.Parent().Name() == "completion"
}

// walk visits the commands that help shows, each before its own subcommands.
func walk(c *cobra.Command, visit func(*cobra.Command)) {
	if c.Hidden || c.Name() == "help" || generatedHelp(c) {
		return
	}
	visit(c)
	for _, sub := range c.Commands() {
		walk(sub, visit)
	}
}

func anchor(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

func writeCommand(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n", c.CommandPath())
	text := c.Long
	if text == "" {
		text = strings.TrimSuffix(c.Short, ".") + "."
	}
	fmt.Fprintf(b, "%s\n\n```text\n%s\n```\n", strings.TrimSpace(text), c.UseLine())
	if c.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", unindent(c.Example))
	}
	var rows []string
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) { rows = append(rows, flagRow(f)...) })
	c.InheritedFlags().VisitAll(func(f *pflag.Flag) { rows = append(rows, flagRow(f)...) })
	if len(rows) > 0 {
		fmt.Fprintf(b, "\n| flag | | default |\n|---|---|---|\n%s", strings.Join(rows, ""))
	}
}

// flagRow is a flag's row of the table; none for help and hidden ones.
func flagRow(f *pflag.Flag) []string {
	if f.Hidden || f.Name == "help" {
		return nil
	}
	name := "`--" + f.Name + "`"
	if f.Shorthand != "" {
		name = "`-" + f.Shorthand + "`, " + name
	}
	value, usage := pflag.UnquoteUsage(f)
	if value != "" {
		name += " " + value
	}
	def := f.DefValue
	if def == "false" || def == "[]" {
		def = ""
	}
	return []string{fmt.Sprintf("| %s | %s | %s |\n", name, cell(usage), def)}
}

// unindent removes the two spaces in front of an example's lines.
func unindent(s string) string {
	lines := strings.Split(strings.Trim(s, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}
