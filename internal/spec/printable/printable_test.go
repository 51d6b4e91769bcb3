package printable

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":                       "",
		"vm-1/eth0":              "vm-1/eth0",
		"Größe 10–20 … ≤ 100 µs": "Größe 10–20 … ≤ 100 µs",
		"\x1b[31mX":              `\x1b[31mX`,
		"a\nb\tc\r\a":            `a\nb\tc\x0d\x07`,
		"\u009b31m\u0085":        `\u009b31m\u0085`,
		"a\u202eb\u2066c\u200f":  `a\u202eb\u2066c\u200f`,
		"\u2028\ufeff\u200b":     `\u2028\ufeff\u200b`,
		"\x9b\xff":               `\x9b\xff`,
		"\U000e0041\U000f0000":   `\U000e0041\U000f0000`,
		"\ufffd":                 "\ufffd",
		"\x7f":                   `\x7f`,
	} {
		if got := Text(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	if got := Lines("a\n\tb\x1b\n"); got != "a\n\tb\\x1b\n" {
		t.Errorf("lines: %q", got)
	}
	if got := Short(strings.Repeat("é", 10)+"\x1b", 5); got != "éé…" {
		t.Errorf("short: %q", got)
	}
}

func TestWriter(t *testing.T) {
	var b strings.Builder
	w := NewWriter(&b, "secret")
	in := "é\x1b[31m\u202e\tx\x9b\n" + Sequence("secret", "\x1b[31m") + "red" + Sequence("other", "\x1b[0m") +
		"\U000e0041\x7f"
	if n, err := w.Write([]byte(in)); n != len(in) || err != nil {
		t.Fatal(n, err)
	}
	want := "é\\u001b[31m\\u202e\tx\\u009b\n\x1b[31mred\\u0000other\\u001b[0m\\u0000\\udb40\\udc41\\u007f"
	if b.String() != want {
		t.Errorf("got  %q\nwant %q", b.String(), want)
	}
	b.Reset()
	for _, c := range []byte("é – \u202e.") { // characters that come in pieces
		if _, err := w.Write([]byte{c}); err != nil {
			t.Fatal(err)
		}
	}
	if b.String() != `é – \u202e.` {
		t.Errorf("in pieces: %q", b.String())
	}
}

// No character that acts on a terminal is left, whatever comes in.
func FuzzText(f *testing.F) {
	f.Add("a\x1b[0m\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		out := Text(s)
		if !utf8.ValidString(out) ||
			strings.ContainsFunc(out, func(r rune) bool {
				return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
			}) {
			t.Fatalf("%q became %q", s, out)
		}
		if Text(out) != out {
			t.Fatalf("%q is escaped twice", s)
		}
	})
}

func TestCount_AgreesWithItsNoun(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 frames were lost", 1: "1 frame was lost", 21: "21 frames were lost"} {
		if got := Count(n, "frame was lost", "frames were lost"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
