package ownfile

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
)

// A sealed file is a JSON object whose last field is a checksum over all before it: programs that know nothing of it
// read the object as ever.

// sealName begins the last field.
const sealName = `,"crc32c":"`

// sealEnd is what ends a sealed file behind the eight digits.
const sealEnd = "\"}\n"

// ErrSum says that a file's checksum is not that of its content.
var ErrSum = errors.New("its checksum does not match its content")

// Seal ends the text of a JSON object, which has at least one field and lacks its closing bracket.
func Seal(open []byte) []byte {
	return append(fmt.Appendf(append(open, sealName...), "%08x", sum(open)), sealEnd...)
}

// CheckSeal reports whether a sealed text is as it was written. A text without a seal passes, as one of a program
// that wrote none: it ends with a list or a number, and so not as a seal that was damaged.
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
