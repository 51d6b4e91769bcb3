package spec

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// The byte order marks of the encodings that Text reads.
const (
	markUTF8    = "\xef\xbb\xbf"
	markUTF16LE = "\xff\xfe"
	markUTF16BE = "\xfe\xff"
)

// errCutUTF16 means that a file in UTF-16 has half a character at its end.
var errCutUTF16 = errors.New("the file is UTF-16 and ends within a character: it was cut; save it again as UTF-8")

// Text is the content of a file as UTF-8 without a byte order mark. UTF-16 that begins with a mark, as programs of
// Windows write it, is converted. Everything else that is kept, sent and compared is this text, so that a file means
// the same wherever it is read.
func Text(content []byte) ([]byte, error) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(content, []byte(markUTF8)):
		return content[len(markUTF8):], nil
	case bytes.HasPrefix(content, []byte(markUTF16LE)):
		order = binary.LittleEndian
	case bytes.HasPrefix(content, []byte(markUTF16BE)):
		order = binary.BigEndian
	default:
		return content, nil
	}
	content = content[len(markUTF16LE):]
	if len(content)%2 != 0 {
		return nil, errCutUTF16
	}
	units := make([]uint16, len(content)/2)
	for i := range units {
		units[i] = order.Uint16(content[2*i:])
	}
	text := make([]byte, 0, len(content))
	for _, r := range utf16.Decode(units) {
		text = utf8.AppendRune(text, r)
	}
	return text, nil
}

// asYAML is a text as the YAML reader understands it, with the same lines. JSON is YAML except for characters in pairs
// of \u escapes, and for some that YAML wants escaped; and the reader knows YAML 1.2 by the name of 1.1 alone.
func asYAML(text []byte) []byte {
	text = bytes.TrimPrefix(text, []byte(markUTF8))
	if first := bytes.TrimLeft(text, " \t\r\n"); len(first) > 0 && (first[0] == '{' || first[0] == '[') &&
		json.Valid(text) {
		return jsonAsYAML(text)
	}
	return withoutVersion(text)
}

// jsonAsYAML writes the characters of a valid JSON text so that YAML reads the same: whatever has a backslash, or is
// not ASCII, is in a string there.
func jsonAsYAML(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		if text[i] == '\\' && text[i+1] == 'u' {
			r, size := escaped(text[i:])
			if size == len(`\u0000`) && !utf16.IsSurrogate(r) {
				out = append(out, text[i:i+size]...)
			} else {
				out = utf8.AppendRune(out, r) // a half alone becomes U+FFFD, as in encoding/json
			}
			i += size
			continue
		}
		if text[i] == '\\' {
			out = append(out, text[i:i+2]...)
			i += 2
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if r >= 0x7f && r <= 0x9f || r == 0x2028 || r == 0x2029 || r == 0xfeff || r&0xfffe == 0xfffe {
			out = fmt.Appendf(out, `\U%08x`, r)
		} else {
			out = append(out, text[i:i+size]...)
		}
		i += size
	}
	return out
}

// escaped is the character that a text begins with as \u escapes, and their length.
func escaped(text []byte) (r rune, size int) {
	const one = len(`\u0000`)
	r = hex(text[2:one])
	if !utf16.IsSurrogate(r) || len(text) < 2*one || text[one] != '\\' || text[one+1] != 'u' {
		return r, one
	}
	if pair := utf16.DecodeRune(r, hex(text[one+2:2*one])); pair != utf8.RuneError {
		return pair, 2 * one
	}
	return r, one
}

// hex is the value of hexadecimal digits.
func hex(digits []byte) (n rune) {
	for _, c := range digits {
		switch {
		case c <= '9':
			n = n<<4 | rune(c-'0')
		default:
			n = n<<4 | rune(c|0x20-'a'+10)
		}
	}
	return n
}

// withoutVersion has a text that names YAML 1.2 in its directives name 1.1.
func withoutVersion(text []byte) []byte {
	at := 0
	for line := range bytes.Lines(text) {
		switch trimmed := bytes.TrimSpace(line); {
		case bytes.HasPrefix(line, []byte("%YAML")):
			if words := bytes.Fields(line); len(words) > 1 && string(words[1]) == "1.2" {
				at += bytes.Index(line, []byte("1.2"))
				text = bytes.Clone(text)
				text[at+2] = '1'
				return text
			}
		case len(trimmed) > 0 && trimmed[0] != '#' && line[0] != '%':
			return text
		}
		at += len(line)
	}
	return text
}
