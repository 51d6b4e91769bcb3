package explain

import (
	"slices"
	"strings"
	"unicode"

	"heddle/internal/spec/known"
)

// Kind is the kind of a topic.
type Kind string

// The kinds of topics, in the order they are shown.
const (
	Reason Kind = "reason" // why a frame, or a copy of one, is dropped or refused
	Field  Kind = "field"  // of the configuration file
	Rule   Kind = "rule"   // of advise
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Reason, Field, Rule} }

// Topic is the explanation of one word. Fields that its kind does not have are empty.
type Topic struct {
	Kind    Kind   `json:"kind"`
	Name    string `json:"name"`
	Meaning string `json:"meaning"`

	// About and Counted are for a reason: what is dropped, and where that is counted. Policy is the setting behind it.
	About   string `json:"about,omitempty"`
	Policy  string `json:"policy,omitempty"`
	Counted string `json:"counted,omitempty"`

	// These are for a field: its possible values, its default, where it can be set, the flag of a command that sets it
	// at a port, an example for the file, its name in vSphere, and the reasons that it causes.
	Values  string   `json:"values,omitempty"`
	Default string   `json:"default,omitempty"`
	SetAt   []string `json:"setAt,omitempty"`
	Flag    string   `json:"flag,omitempty"`
	Example string   `json:"example,omitempty"`
	VSphere string   `json:"vsphere,omitempty"`
	Causes  []string `json:"causes,omitempty"`

	// Level, Sign and Consequence are for a rule: its severity, what it measures, and the consequence.
	Level       string `json:"level,omitempty"`
	Sign        string `json:"sign,omitempty"`
	Consequence string `json:"consequence,omitempty"`

	// Fix says what to do; Command does it, or shows the state behind it.
	Fix     string `json:"fix,omitempty"`
	Command string `json:"command,omitempty"`
	// Statements are the numbered behaviours of docs/reference/behaviour.md.
	Statements []string `json:"statements,omitempty"`
}

// Topics returns all topics, by kind, in the order of their kind.
func Topics() []Topic {
	return slices.Concat(reasonTopics(), policyTopics(), objectTopics(), ruleTopics())
}

// Find returns the topics for a word: an exact name, a flag, the last part of a field's path, or a name in vSphere; and
// all fields of a section of the file. If no field has the name, it is also searched within their paths. kind restricts
// the result, "" does not.
func Find(word string, kind Kind) (found []Topic) {
	if bare(word) == "" {
		return nil
	}
	all := slices.DeleteFunc(Topics(), func(t Topic) bool { return kind != "" && t.Kind != kind })
	part := !slices.ContainsFunc(all, func(t Topic) bool { return t.Kind == Field && named(&t, word) })
	for _, t := range all {
		if named(&t, word) || inSection(&t, word) || part && within(&t, word) {
			found = append(found, t)
		}
	}
	return found
}

// inSection reports whether a word is the section of a field: the first part of its path, in the object.
func inSection(t *Topic, word string) bool {
	path := t.Name
	if i := strings.LastIndex(path, "[]."); i >= 0 && !slices.ContainsFunc(listsInSections(),
		func(list string) bool { return strings.Contains(path, list) }) {
		path = path[i+3:]
	}
	path = strings.TrimPrefix(path, "switches[].")
	section, _, deeper := strings.Cut(path, ".")
	return t.Kind == Field && deeper && bare(section) == bare(word)
}

// listsInSections are the lists within a section of a switch: their fields are among the section's.
func listsInSections() []string {
	return []string{".ipfix.collectors[].", ".tunnel.endpoints[].", ".tunnel.peers[]."}
}

// named reports whether a word is one of a topic's names.
func named(t *Topic, word string) bool {
	w := bare(word)
	if w == bare(t.Name) || t.Kind == Field && (w == bare(t.Flag) || w == bare(t.VSphere)) {
		return true
	}
	return t.Kind == Field && endsWith(segments(t.Name), segments(word))
}

// within reports whether a word is a part of the field's path.
func within(t *Topic, word string) bool {
	if t.Kind != Field {
		return false
	}
	is, in := segments(t.Name), segments(word)
	for i := range is {
		if len(in) > 0 && len(is)-i > len(in) && slices.Equal(is[i:i+len(in)], in) {
			return true
		}
	}
	return false
}

// segments returns the parts of a path in normal form.
func segments(path string) (list []string) {
	for part := range strings.SplitSeq(path, ".") {
		list = append(list, bare(part))
	}
	return list
}

func endsWith(list, end []string) bool {
	return len(end) > 0 && len(end) <= len(list) && slices.Equal(list[len(list)-len(end):], end)
}

// bare returns a word in normal form, without what may differ between spellings of one name: case, dashes, brackets.
func bare(word string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, word)
}

// Names returns the names of the topics of a kind, "" for all, in order and each once.
func Names(kind Kind) (list []string) {
	for _, t := range Topics() {
		if kind == "" || t.Kind == kind {
			list = append(list, t.Name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Missing returns the message about a word without a topic.
func Missing(word string, kind Kind) string {
	n := known.Names{What: "reason, field or rule", All: Names(kind)}
	if kind != "" {
		n.What = string(kind)
	}
	if known.Nearest(word, n.All) == "" { // people may have written the last part of a path
		for _, name := range Names(Field) {
			if kind == "" || kind == Field {
				n.All = append(n.All, name[strings.LastIndexByte(name, '.')+1:])
			}
		}
	}
	if known.Nearest(word, n.All) == "" {
		return "there is no " + n.What + " " + known.Shown(word) + "; all of them: heddle explain"
	}
	return n.Missing(word)
}
