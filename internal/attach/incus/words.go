package incus

import (
	"net/url"
	"strings"
)

// words splits the value of a key at blanks. A port group's name may have blanks: it is in double quotes then, or has
// %20 in place of each (and %25 for a %).
func words(text string) (list []string) {
	var word strings.Builder
	began, quoted := false, false
	end := func() {
		if began {
			list = append(list, unescaped(word.String()))
		}
		word.Reset()
		began = false
	}
	for _, r := range text {
		switch {
		case r == '"':
			quoted, began = !quoted, true
		case !quoted && strings.ContainsRune(" \t\r\n", r):
			end()
		default:
			word.WriteRune(r)
			began = true
		}
	}
	end()
	return list
}

// unescaped is the word as it is meant; one that can't be read stays as it is, and names nothing.
func unescaped(word string) string {
	if plain, err := url.PathUnescape(word); err == nil {
		return plain
	}
	return word
}
