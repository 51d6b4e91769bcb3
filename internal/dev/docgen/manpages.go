package docgen

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/spf13/cobra"
)

// overview makes the page heddle(1) a way into the others: every command with its page and what it does, by the groups
// of the program's help, and the files there are.
func overview(root *cobra.Command) {
	var b strings.Builder
	b.WriteString(root.Long + "\n\n# COMMANDS\n")
	for _, g := range root.Groups() {
		fmt.Fprintf(&b, "\n## %s\n", strings.TrimSuffix(g.Title, ":"))
		for _, c := range root.Commands() {
			if c.GroupID == g.ID {
				walk(c, func(c *cobra.Command) {
					fmt.Fprintf(&b, "\n**%s(1)**\n: %s\n", anchor(c), c.Short)
				})
			}
		}
	}
	b.WriteString("\n# FILES\n")
	for _, f := range [][2]string{
		{"/etc/heddle/heddle.yaml", "configuration of this host: **heddle.yaml(5)**"},
		{"/etc/default/heddle", "environment of the service, such as HEDDLE_METRICS"},
		{"/run/heddle", "sockets of the agents, and the kernel's objects"},
		{"/var/lib/heddle", "what the agents keep over a restart"},
		{"/usr/share/doc/heddle/docs", "the documentation; begin with tutorial/first-lab.md"},
	} {
		fmt.Fprintf(&b, "\n*%s*\n: %s\n", f[0], f[1])
	}
	b.WriteString("\n# EXIT STATUS\n\n0 done; 1 something went wrong while running, or is wrong; 2 the command line " +
		"or the configuration is wrong, and nothing was changed.\n")
	root.Long = b.String()
	root.Use, root.DisableFlagsInUseLine = "heddle COMMAND [ARGUMENT…] [--flag…]", true
}

var (
	htmlComment = regexp.MustCompile(`(?s)<!--.*?-->\n?`)
	pageLink    = regexp.MustCompile(`\[([^\]]+)\]\(([^()\s]+)\)`)
	title       = regexp.MustCompile(`(?m)^# .*\n`)
	section     = regexp.MustCompile(`(?m)^## (.*)$`)
	tableRows   = regexp.MustCompile(`(?m)(?:^\|.*\|\n)+`)
)

// tableAsList is a table as a list of terms: a terminal is too narrow for its columns. Where the first column says what
// a field belongs to, it becomes a heading above its fields.
func tableAsList(table string) string {
	lines := strings.Split(strings.TrimSpace(table), "\n")
	head := cells(lines[0])
	var b strings.Builder
	for _, line := range lines[2:] {
		names, row := head, cells(line)
		if names[0] == "where" {
			if row[0] != "" {
				fmt.Fprintf(&b, "\n## %s\n", row[0])
			}
			names, row = names[1:], row[1:]
		}
		var said []string
		for i, cell := range row[1:] {
			switch name := names[i+1]; {
			case cell == "":
			case name == "values" || name == "":
				said = append(said, cell)
			case cell == "needed":
				said = append(said, "Needed")
			default:
				said = append(said, strings.ToUpper(name[:1])+name[1:]+": "+cell)
			}
		}
		term := row[0]
		if term == "" {
			term = "the same"
		}
		fmt.Fprintf(&b, "\n%s\n: %s\n", term, strings.Join(said, ". "))
	}
	return b.String() + "\n"
}

// cells are those of a row.
func cells(row string) []string {
	all := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// writeConfigurationManual makes heddle.yaml(5) of the page of the configuration, which has the same text.
func writeConfigurationManual(repository, dir string, at time.Time) error {
	page, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(configurationPath)))
	if err != nil {
		return fmt.Errorf("read the page of the configuration: %w", err)
	}
	text := htmlComment.ReplaceAllString(string(page), "")
	text = title.ReplaceAllString(text, "")
	text = pageLink.ReplaceAllStringFunc(text, func(link string) string {
		m := pageLink.FindStringSubmatch(link)
		return m[1] + seeAlso(m[2])
	})
	text = tableRows.ReplaceAllStringFunc(text, tableAsList)
	text = section.ReplaceAllStringFunc(text, func(h string) string {
		return "# " + strings.ToUpper(strings.TrimPrefix(h, "## "))
	})
	text = fmt.Sprintf("%% \"HEDDLE.YAML\" \"5\" %q \"Heddle\" \"Heddle\"\n# NAME\n\nheddle.yaml - configuration of a "+
		"host's virtual switches\n\n# DESCRIPTION\n%s\n# SEE ALSO\n\n**heddle(1)**, **heddle-check(1)**, "+
		"**heddle-apply(1)**, **heddle-config(1)**\n", at.Format("Jan 2006"), text)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "heddle.yaml.5"), md2man.Render([]byte(text)), 0o644)
}

// seeAlso returns a manual page's reference for a link: nothing for a link within the page itself, else the page of the
// documentation.
func seeAlso(target string) string {
	page, _, _ := strings.Cut(target, "#")
	switch {
	case page == "":
		return ""
	case strings.Contains(page, "://"):
		return " <" + page + ">"
	case strings.HasPrefix(page, "../"):
		return ": " + strings.TrimPrefix(page, "../")
	}
	return ": reference/" + page
}
