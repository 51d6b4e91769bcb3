package vsphere

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestName is how many bytes a name may have.
const longestName = 63

// names gives objects of one kind names that Heddle accepts, each once.
type names struct {
	noSlash bool
	given   map[string]string // by the name in vSphere
	used    map[string]bool
}

func newNames(noSlash bool) *names {
	return &names{noSlash, map[string]string{}, map[string]bool{}}
}

// add gives an object a name. Of several with one name in vSphere the first is found by it.
func (n *names) add(name string) string {
	got := n.fresh(name)
	if _, taken := n.given[name]; !taken {
		n.given[name] = got
	}
	return got
}

// fresh returns a name that no other object has.
func (n *names) fresh(name string) string {
	base := plain(name, n.noSlash)
	got := base
	for i := 2; n.used[got]; i++ {
		end := fmt.Sprintf("-%d", i)
		got = cut(base, longestName-len(end)) + end
	}
	n.used[got] = true
	return got
}

// plain is the name with a dash for each character that names do not have. A name that is too long ends in a hash of
// the whole one, so that names which differ at the end alone stay apart.
func plain(name string, noSlash bool) string {
	s := strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError, r == '/' && noSlash:
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), strings.ContainsRune("._-/: ", r):
			return r
		}
		return '-'
	}, strings.ToValidUTF8(name, "-"))
	s = strings.TrimSpace(s)
	if first, _ := utf8.DecodeRuneInString(s); s == "" || first != '_' && !unicode.IsLetter(first) &&
		!unicode.IsDigit(first) {
		s = "_" + s
	}
	if len(s) > longestName {
		sum := sha256.Sum256([]byte(name))
		s = cut(s, longestName-9) + fmt.Sprintf("-%x", sum[:4])
	}
	return s
}

// cut shortens a name to at most so many bytes, at the end of a character.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return strings.TrimRight(s[:most], " ")
}
