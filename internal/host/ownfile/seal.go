package ownfile

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
)

// A sealed file is a JSON object whose last field is a checksum over everything before it: programs that do not know
// the seal read the object as before.

// sealName is the beginning of the last field.
const sealName = `,"crc32c":"`

// sealEnd is the end of a sealed file, after the eight digits.
const sealEnd = "\"}\n"

// ErrSum means that a file's checksum is not that of its content.
var ErrSum = errors.New("its checksum does not match its content")

// Seal completes the text of a JSON object, which must have at least one field and lack its closing bracket.
func Seal(open []byte) []byte {
	return append(fmt.Appendf(append(open, sealName...), "%08x", sum(open)), sealEnd...)
}

// CheckSeal returns an error if a sealed text is not as it was written. A text without a seal, from a version that
// wrote none, passes: it ends with a list or a number, so it cannot be a text with a damaged seal.
func CheckSeal(text []byte) error {
	begin := len(text) - len(sealName) - 8 - len(sealEnd)
	if begin > 0 && bytes.Equal(text[begin:begin+len(sealName)], []byte(sealName)) &&
		bytes.HasSuffix(text, []byte(sealEnd)) {
		if string(text[begin+len(sealName):len(text)-len(sealEnd)]) != fmt.Sprintf("%08x", sum(text[:begin])) {
			return ErrSum
		}
		return nil
	}
	if bytes.HasSuffix(bytes.TrimRight(text, " \t\r\n"), []byte(`"}`)) {
		return ErrSum
	}
	return nil
}

func sum(text []byte) uint32 { return crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)) }
