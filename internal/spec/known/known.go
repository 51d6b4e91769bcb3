package known

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// most is how many names a message lists; it only counts the others.
const most = 12

// Names is the set of existing names.
type Names struct {
	// What is the kind of thing in words: port, port group.
	What string
	// Owner is what contains them, such as "switch lab"; "" for the host.
	Owner string
	All   []string
	// Else says what other names mean: "eno1" is "the device of uplink1".
	Else map[string]string
}

// Missing is the message about a name that does not exist: switch lab has no port group wbe; did you mean web?
func (n Names) Missing(name string) string {
	if n.Owner != "" {
		return fmt.Sprintf("%s has no %s %s%s", n.Owner, n.What, Shown(name), n.Instead(name))
	}
	return fmt.Sprintf("there is no %s %s%s", n.What, Shown(name), n.Instead(name))
}

// Instead is the end of such a message, with its semicolon: "; did you mean web?", "; it has db, web and 40 more".
func (n Names) Instead(name string) string {
	if other, ok := n.Else[name]; ok {
		return fmt.Sprintf("; %s is %s", Shown(name), other)
	}
	all := slices.DeleteFunc(slices.Clone(n.All), func(s string) bool { return s == "" })
	slices.Sort(all)
	all = slices.Compact(all)
	if near := Nearest(name, all); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	if begun := beginning(name, all); len(begun) > 0 && len(begun) < len(all) {
		return fmt.Sprintf("; did you mean %s?", anyOf(begun))
	}
	has := "it has"
	if n.Owner == "" {
		has = "there are"
		if len(all) == 1 {
			has = "there is"
		}
	}
	if len(all) == 0 {
		return "; " + strings.Replace(has, "are", "is", 1) + " none"
	}
	return "; " + has + " " + List(all)
}

// List is the names with commas between them; of many names only the first ones, and the number of the others.
func List(all []string) string {
	if len(all) <= most+1 { // "and 1 more" is no shorter than its name
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}

// maxShown is how many bytes of a name a message quotes.
const maxShown = 60

// Shown makes a name that somebody gave fit for one line of a message: quoted if it is empty or contains a space or
// anything but printable text.
func Shown(s string) string {
	if len(s) > maxShown {
		cut := maxShown
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	odd := func(r rune) bool { return r == utf8.RuneError || r == ' ' || !unicode.IsPrint(r) }
	if s == "" || strings.ContainsFunc(s, odd) {
		return strconv.Quote(s)
	}
	return s
}

// Nearest is the known word that was most likely meant by word, "" if none is near. Near means, apart from letter case,
// at most two edits and fewer than half of its letters. Names that differ only in their digits are not near: whoever
// writes vm9 where there is a vm1 has not made a typing error.
func Nearest(word string, all []string) string {
	best, bestDist := "", 3
	w := strings.ToLower(word)
	if len(w) > maxShown {
		return ""
	}
	for _, k := range all {
		if l := strings.ToLower(k); l != w && withoutDigits(l) == withoutDigits(w) {
			continue
		}
		if dist := edits(w, strings.ToLower(k)); dist < bestDist && 2*dist < len(k) {
			best, bestDist = k, dist
		}
	}
	return best
}

// leastBegun is how many letters of a name somebody has to give to mean it.
const leastBegun = 3

// beginning are the names that begin with what was given, or have it after a slash, dot or dash: vm1 is vm1/eth0 to who
// knows the guest alone. None are where there are many: a list of them is no help.
func beginning(word string, all []string) []string {
	w := strings.ToLower(word)
	if len(w) < leastBegun || len(w) > maxShown {
		return nil
	}
	var found []string
	for _, k := range all {
		if begins(strings.ToLower(k), w) {
			found = append(found, k)
		}
	}
	if len(found) > most {
		return nil
	}
	return found
}

// begins says whether a name, or a part of it, begins with word and the part does not go on with a digit: vm1 does not
// mean vm10.
func begins(name, word string) bool {
	for at := 0; at <= len(name)-len(word); at++ {
		rest, is := strings.CutPrefix(name[at:], word)
		if is && (at == 0 || strings.ContainsRune("/.-_", rune(name[at-1]))) &&
			(rest == "" || !unicode.IsDigit(rune(rest[0]))) {
			return true
		}
	}
	return false
}

// anyOf are names as a choice: "a, b or c".
func anyOf(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// edits is the distance between two words, in bytes inserted, removed, replaced, or swapped with their neighbour (the
// optimal string alignment distance).
func edits(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			d := last[j]
			if a[i] != b[j] {
				d++
			}
			d = min(d, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, before[j-1]+1)
			}
			row[j+1] = d
		}
	}
	return row[len(b)]
}

func withoutDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, s)
}
