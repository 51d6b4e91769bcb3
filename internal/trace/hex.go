package trace

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// ParseHex reads a frame written in hexadecimal: digits with or without blanks, colons, dashes or "0x" between the bytes, or a
// dump with an offset at the beginning of each line, as tcpdump -xx, xxd and hexdump -C write it. The text beside a dump's
// bytes is left out. An error says where.
func ParseHex(text string) ([]byte, error) {
	var out []byte
	for n, line := range strings.Split(text, "\n") {
		b, err := hexLine(line, len(out))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		if out = append(out, b...); len(out) > MaxLength {
			return nil, fmt.Errorf("line %d: the frame is longer than %d bytes", n+1, MaxLength)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there is no frame in it")
	}
	return out, nil
}

// hexLine reads one line, the first of whose bytes has that offset.
func hexLine(line string, at int) ([]byte, error) {
	line = strings.TrimSpace(line)
	dump := false
	if word, rest, ok := strings.Cut(line, " "); ok || strings.HasSuffix(word, ":") {
		digits := strings.TrimPrefix(strings.TrimSuffix(word, ":"), "0x")
		if dump = isOffset(word, digits, at); dump {
			line = rest
		}
	}
	if line, _, _ = strings.Cut(line, "|"); dump { // hexdump -C
		line, _, _ = strings.Cut(strings.TrimLeft(line, " "), "  ") // the text beside the bytes
	}
	line = strings.NewReplacer(" ", "", "\t", "", "\r", "", ":", "", "-", "", "0x", "", ",", "").Replace(line)
	b, err := hex.DecodeString(line)
	if err == nil {
		return b, nil
	}
	if i := strings.IndexFunc(line, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF", r) }); i >= 0 {
		return nil, fmt.Errorf("%q is not a hexadecimal digit", []rune(line[i:])[0])
	}
	return nil, fmt.Errorf("%d digits: a byte is two", len(line))
}

// isOffset says whether a word is the offset that the next byte of a dump has.
func isOffset(word, digits string, at int) bool {
	if len(digits) < 4 || len(digits) > 8 || !strings.HasSuffix(word, ":") && len(digits) != 8 {
		return false
	}
	var offset int
	n, err := fmt.Sscanf(digits, "%x", &offset)
	return n == 1 && err == nil && offset == at
}
