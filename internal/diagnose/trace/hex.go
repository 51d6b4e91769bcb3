package trace

import (
	"encoding/hex"
	"fmt"
	"heddle/internal/diagnose"
	"slices"
	"strconv"
	"strings"
)

// ParseHex parses a frame in hexadecimal: digits with or without blanks, colons, dashes or "0x" between the bytes, or a
// dump with an offset at the beginning of each line, in the formats of tcpdump -xx, xxd and hexdump -C. The text column
// of a dump, and tcpdump's words before the bytes, are ignored. The error has the line.
func ParseHex(text string) ([]byte, error) {
	var out []byte
	lines := strings.Split(text, "\n")
	dump := slices.ContainsFunc(lines, func(l string) bool { return isOffset(firstWord(l), ":", 0) })
	for n, line := range lines {
		if dump && !strings.HasSuffix(firstWord(line), ":") {
			continue // tcpdump's words about the packet
		}
		if dump && len(out) > 0 && isOffset(firstWord(line), ":", 0) {
			return nil, fmt.Errorf("line %d: a second frame begins: give one", n+1)
		}
		if dump && !isOffset(firstWord(line), ":", len(out)) {
			return nil, fmt.Errorf("line %d: %q is not the offset %#04x that comes next", n+1, firstWord(line),
				len(out))
		}
		b, err := hexLine(line, len(out))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		if out = append(out, b...); len(out) > diagnose.MaxLength {
			return nil, fmt.Errorf("line %d: the frame is longer than %d bytes", n+1, diagnose.MaxLength)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there is no frame in it")
	}
	return out, nil
}

// hexLine parses one line whose first byte has that offset.
func hexLine(line string, at int) ([]byte, error) {
	line = strings.TrimSpace(line)
	word, rest, _ := strings.Cut(line, " ")
	rest, _, hexdump := strings.Cut(rest, "|")
	switch {
	case isOffset(word, ":", at): // tcpdump, xxd: the text follows two blanks
		line, _, _ = strings.Cut(strings.TrimLeft(rest, " "), "  ")
	case isOffset(word, "", at) && (hexdump || at > 0 && rest == ""): // hexdump -C, whose last line is only an offset
		line = rest
	}
	line = strings.NewReplacer(" ", "", "\t", "", "\r", "", ":", "", "-", "", "0x", "", ",", "").Replace(line)
	b, err := hex.DecodeString(line)
	if err == nil {
		return b, nil
	}
	if i := strings.IndexFunc(line, func(r rune) bool {
		return !strings.ContainsRune("0123456789abcdefABCDEF", r)
	}); i >= 0 {
		return nil, fmt.Errorf("%q is not a hexadecimal digit", string([]rune(line[i:])[0]))
	}
	return nil, fmt.Errorf("%d digits: a byte is two", len(line))
}

// firstWord returns the text before the first blank.
func firstWord(line string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	return word
}

// isOffset reports whether a word is the offset of the next byte of a dump, followed by the suffix.
func isOffset(word, suffix string, at int) bool {
	digits, ok := strings.CutSuffix(word, suffix)
	digits = strings.TrimPrefix(digits, "0x")
	if !ok || len(digits) < 4 || len(digits) > 8 || suffix == "" && len(digits) != 8 {
		return false
	}
	offset, err := strconv.ParseUint(digits, 16, 32)
	return err == nil && offset == uint64(at)
}
