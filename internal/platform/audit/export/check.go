package export

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"heddle/internal/platform/audit"
)

// longestLine is how long a line is at most: one of the log, and what an export and a syslog server put around it.
const longestLine = 512 << 10

// Check checks copies of audit logs, and what was exported of them, without a controller.
type Check struct {
	head   string
	chains map[chainName]*audit.Checker
	// Strange is how many lines are no lines of an audit log.
	Strange int
}

type chainName struct{ controller, series string }

// Checked is what a check found of one controller's series. Controller is "" for a copy, which does not say whose it
// is.
type Checked struct {
	Controller string
	audit.Chain
}

// NewCheck begins a check. head is the hash of a line that somebody noted, "" for none.
func NewCheck(head string) *Check { return &Check{head: head, chains: map[chainName]*audit.Checker{}} }

// File checks the lines of a file: of a log itself, or exported, also with what a syslog server puts before each.
// Files of one log come in the order of their names.
func (c *Check) File(path string, r io.Reader) error {
	base := filepath.Base(path)
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), longestLine)
	for n := 1; lines.Scan(); n++ {
		line := lines.Bytes()
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		begin := bytes.IndexByte(line, '{')
		if begin < 0 {
			c.Strange++
			continue
		}
		where := fmt.Sprintf("%s, line %d", base, n)
		if series, controller, text, ok := Original(bytes.TrimRight(line[begin:], " \r\n")); ok {
			c.of(chainName{controller, series}, true).Line(where, text)
			continue
		}
		series, _, _ := strings.Cut(base, "-")
		if !slices.Contains(audit.Series(), series) {
			series = base
		}
		c.of(chainName{"", series}, false).Line(where, line)
	}
	return lines.Err()
}

func (c *Check) of(name chainName, exported bool) *audit.Checker {
	k := c.chains[name]
	if k == nil {
		k = audit.NewChecker(name.series, c.head, exported)
		c.chains[name] = k
	}
	return k
}

// Chains are what was found, by controller and series.
func (c *Check) Chains() (list []Checked) {
	for name, k := range c.chains {
		list = append(list, Checked{name.controller, k.Chain()})
	}
	slices.SortFunc(list, func(a, b Checked) int {
		return cmp.Or(cmp.Compare(a.Controller, b.Controller), cmp.Compare(a.Series, b.Series))
	})
	return list
}
