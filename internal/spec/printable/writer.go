package printable

import (
	"bytes"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// Writer is for a command's text output: it escapes every character that acts on a terminal, except line ends, tabs and
// the sequences that the program itself marks. JSON stays valid: outside of strings it has no such characters, and
// inside the escapes mean the same.
type Writer struct {
	to   io.Writer
	mark string
	part []byte // the beginning of a character whose end has not come yet
}

// NewWriter writes to to. mark is a word that nobody else knows; Sequence uses it to mark what must not be escaped.
func NewWriter(to io.Writer, mark string) *Writer { return &Writer{to: to, mark: mark} }

// Sequence is a control sequence of the program's own, which a Writer with that mark passes unchanged.
func Sequence(mark, s string) string { return "\x00" + mark + s + "\x00" }

// Write escapes and writes all of p.
func (w *Writer) Write(p []byte) (int, error) {
	text := append(w.part, p...)
	w.part = nil
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		if !utf8.FullRune(text) {
			w.part = append([]byte{}, text...)
			break
		}
		if s, rest, ok := w.sequence(text); ok {
			out, text = append(out, s...), rest
			continue
		}
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			out = fmt.Appendf(out, `\u%04x`, text[0])
		case r != '\n' && r != '\t' && odd(r):
			for _, u := range utf16.Encode([]rune{r}) {
				out = fmt.Appendf(out, `\u%04x`, u)
			}
		default:
			out = append(out, text[:size]...)
		}
		text = text[size:]
	}
	if _, err := w.to.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// sequence takes a marked sequence from the beginning of the text.
func (w *Writer) sequence(text []byte) (s, rest []byte, ok bool) {
	if w.mark == "" || text[0] != 0 {
		return nil, nil, false
	}
	if text, ok = bytes.CutPrefix(text[1:], []byte(w.mark)); !ok {
		return nil, nil, false
	}
	return bytes.Cut(text, []byte{0})
}
