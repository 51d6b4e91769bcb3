package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fault is one thing that is wrong with a configuration.
type Fault struct {
	File string `json:"file,omitzero"`
	// Line and Column count from 1; 0 when the fault has no place in a file, as with a port given at run time.
	Line   int `json:"line,omitzero"`
	Column int `json:"column,omitzero"`
	// Path leads to the value through the file's own names: switches[lab].portGroups[web].vlan.access.
	Path string `json:"path,omitzero"`
	// Value is what was written, shortened where it is long; "" when it is missing or a whole mapping.
	Value string `json:"value,omitzero"`
	// Message says what would be right.
	Message string `json:"message"`
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
	return strings.Join(append(parts, f.Message), ": ")
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

// sort brings fs into the order of the file.
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

// maxShown is how many bytes of a value a fault repeats.
const maxShown = 60

// shown makes a value fit for one line of a message: quoted when it is empty or holds anything but printable text.
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

// at is a place in a configuration: key finds its position in the file, show is what a person reads.
type at struct{ key, show string }

func (a at) field(name string) at {
	if a.key == "" {
		return at{name, name}
	}
	return at{a.key + "." + name, a.show + "." + name}
}

// item is element i of a list, shown by its name when it has a readable one.
func (a at) item(i int, name string) at {
	n := strconv.Itoa(i)
	if name == "" || checkName(name) != "" {
		name = n
	}
	return at{a.key + "[" + n + "]", a.show + "[" + name + "]"}
}

// parentKey is the key of the mapping or list that holds key, "" at the root.
func parentKey(key string) string {
	return key[:max(strings.LastIndexAny(key, ".["), 0)]
}

// position is a place in the file, both counted from 1.
type position struct{ line, column int }

// source remembers where the values of a parsed file stand, and which of them could not be read.
type source struct {
	file string
	pos  map[string]position
	// bad holds the keys with a fault of their own; below, the keys that have one somewhere beneath them. What depends on
	// a value that could not be read is not reported a second time.
	bad, below map[string]bool
	// ports is how many of the configuration's first ports are the file's; those after it were connected at run time.
	ports int
}

func newSource(file string) *source {
	return &source{file: file, pos: map[string]position{}, bad: map[string]bool{}, below: map[string]bool{}}
}

// find is the position of key or of the nearest thing around it.
func (s *source) find(key string) position {
	for ; key != ""; key = parentKey(key) {
		if p, ok := s.pos[key]; ok {
			return p
		}
	}
	return s.pos[""]
}

func (s *source) markBad(key string) {
	s.bad[key] = true
	for key != "" && !s.below[key] {
		s.below[key] = true
		key = parentKey(key)
	}
}

// spoilt says whether key, something around it or something in it could not be read.
func (s *source) spoilt(key string) bool {
	if s.below[key] || s.bad[""] {
		return true
	}
	for ; key != ""; key = parentKey(key) {
		if s.bad[key] {
			return true
		}
	}
	return false
}

// namesLost says whether a name may be missing from the list of n objects at a because part of the file could not be read,
// so that a reference to one that seems not to be there may be right all the same. Faults in other fields of the objects
// take no name away.
func (s *source) namesLost(list at, n int) bool {
	for key := list.key; ; key = parentKey(key) {
		if s.bad[key] {
			return true
		}
		if key == "" {
			break
		}
	}
	for i := range n {
		if e := list.item(i, ""); s.bad[e.key] || s.spoilt(e.field("name").key) {
			return true
		}
	}
	return false
}
