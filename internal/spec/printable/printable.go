package printable

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is s in one line, with every character escaped that acts on a terminal instead of being visible: \x1b, \n,
// \u202e. Text without such characters is returned unchanged.
func Text(s string) string { return escape(s, odd) }

// Lines is Text for several lines: line ends and tabs stay.
func Lines(s string) string {
	return escape(s, func(r rune) bool { return r != '\n' && r != '\t' && odd(r) })
}

// Short is Text of at most most bytes of s; an ellipsis stands for the rest.
func Short(s string, most int) string {
	if len(s) <= most {
		return Text(s)
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return Text(s[:most]) + "…"
}

// odd reports whether a character acts on a terminal: controls (C0, C1), formats (directions, joiners, marks of zero
// width), ends of lines and paragraphs, and invalid characters. A byte that is not UTF-8 comes as utf8.RuneError, and
// so does U+FFFD itself.
func odd(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return r != utf8.RuneError && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co,
		unicode.Noncharacter_Code_Point)
}

func escape(s string, odd func(rune) bool) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, odd) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case odd(r):
			b.WriteString(escaped(r))
		default:
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

// escaped is a character's escape sequence, the same for Go, JSON and YAML where these agree.
func escaped(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\t':
		return `\t`
	case r < utf8.RuneSelf:
		return fmt.Sprintf(`\x%02x`, r)
	case r <= 0xffff:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}
