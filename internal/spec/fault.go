package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"heddle/internal/spec/printable"
)

// Fault is one thing that is wrong with a configuration.
type Fault struct {
	File string `json:"file,omitzero"`
	// Line and Column count from 1; they are 0 if the fault has no position in a file, for example for a port given
	// at run time.
	Line   int `json:"line,omitzero"`
	Column int `json:"column,omitzero"`
	// Path leads to the value through the file's own names: switches[lab].portGroups[web].vlan.access.
	Path string `json:"path,omitzero"`
	// Value is what was written, shortened if it is long; "" if it is missing or a whole mapping.
	Value string `json:"value,omitzero"`
	// Message says what would be right.
	Message string `json:"message"`
	// Missing: the value is a name that does not exist.
	Missing bool `json:"-"`
	// TooMuch: the text has more values or bytes than are read of one.
	TooMuch bool `json:"-"`
}

// Error is the fault on one line: file:line:column: path: value: message, without the parts it does not have.
func (f Fault) Error() string {
	var parts []string
	switch {
	case f.Line > 0:
		parts = append(parts, fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column))
	case f.File != "":
		parts = append(parts, f.File)
	}
	for _, s := range []string{f.Path, f.Value} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return printable.Text(strings.Join(append(parts, f.Message), ": "))
}

// Faults are everything that is wrong with a configuration, in the order of the file.
type Faults []Fault

// Error is one line per fault.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// sort sorts fs into the order of the file.
func (fs Faults) sort() {
	slices.SortStableFunc(fs, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// err is fs, sorted, as an error; nil when there is none.
func (fs Faults) err() error {
	if len(fs) == 0 {
		return nil
	}
	fs.sort()
	return fs
}

// maxShown is how many bytes of a value a fault quotes.
const maxShown = 60

// shown makes a value fit for one line of a message: quoted if it is empty or contains anything but printable text.
func shown(s string) string {
	if len(s) > maxShown {
		cut := maxShown
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	odd := func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
	if s == "" || strings.ContainsFunc(s, odd) || strings.TrimSpace(s) != s {
		return strconv.Quote(s)
	}
	return s
}
