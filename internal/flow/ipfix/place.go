package ipfix

import (
	"encoding/binary"
	"math"
	"time"
)

// Place is the position of a field in the records of a template without variable fields before it. The zero Place
// stands for a field that the template does not have: writing to it does nothing, so that one function can fill records
// of several templates.
type Place struct{ offset, length uint16 }

// Place is the position of the first field with the element; the zero Place if the template has none, or none at a
// fixed position.
func (t *Template) Place(pen uint32, id uint16) Place {
	i := t.Index(pen, id)
	if i < 0 || i >= len(t.offsets) || t.fields[i].Length == Variable {
		return Place{}
	}
	return Place{t.offsets[i], t.fields[i].Length}
}

// PlaceOf is the Place of a registered element by its name.
func (t *Template) PlaceOf(name string) Place {
	e, ok := Named(name)
	if !ok {
		return Place{}
	}
	return t.Place(e.PEN, e.ID)
}

// Unsigned writes a number in the field's length, 1–8 bytes. A number that is too large for it becomes the largest one:
// a reduced counter (RFC 7011 §6.2) must not wrap.
func (p Place) Unsigned(record []byte, v uint64) {
	switch p.length {
	case 8:
		binary.BigEndian.PutUint64(record[p.offset:], v)
	case 4:
		binary.BigEndian.PutUint32(record[p.offset:], uint32(min(v, math.MaxUint32)))
	case 2:
		binary.BigEndian.PutUint16(record[p.offset:], uint16(min(v, math.MaxUint16)))
	case 1:
		record[p.offset] = uint8(min(v, math.MaxUint8))
	case 3, 5, 6, 7:
		putUnsigned(record[p.offset:p.offset+p.length], v)
	}
}

// Bytes copies a value: an address, a MAC, a string or bytes. A shorter one is padded with zeros, a longer one is cut.
func (p Place) Bytes(record, v []byte) {
	field := record[p.offset : p.offset+p.length]
	clear(field[copy(field, v):])
}

// putUnsigned writes a number into all bytes of b; if it is too large, the largest number that fits.
func putUnsigned(b []byte, v uint64) {
	if len(b) < 8 && v >= 1<<(8*len(b)) {
		v = 1<<(8*len(b)) - 1
	}
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte(v)
		v >>= 8
	}
}

// AppendUnsigned appends a number in the given length, 1–8 bytes, as Place.Unsigned writes it.
func AppendUnsigned(b []byte, v uint64, length int) []byte {
	b = append(b, make([]byte, length)...)
	putUnsigned(b[len(b)-length:], v)
	return b
}

// AppendVariable appends a value of variable length, preceded by its length (RFC 7011 §7): 1 byte up to 254, and 3
// above. A value of more than 65535 bytes, which do not fit into a message, is cut.
func AppendVariable[T string | []byte](b []byte, v T) []byte {
	if len(v) > math.MaxUint16 {
		v = v[:math.MaxUint16]
	}
	if len(v) < 255 {
		b = append(b, byte(len(v)))
	} else {
		b = append(b, 255, byte(len(v)>>8), byte(len(v)))
	}
	return append(b, v...)
}

// ntpEpoch is how many seconds 1900, the epoch of RFC 7011 §6.1.9, is before 1970.
const ntpEpoch = 2208988800

// NTP is a time in the form of dateTimeMicroseconds and dateTimeNanoseconds (RFC 7011 §6.1.9, §6.1.10): seconds since
// 1900 in the upper 32 bits and their 2⁻³² parts in the lower.
func NTP(t time.Time) uint64 {
	return uint64(uint32(t.Unix()+ntpEpoch))<<32 | uint64(t.Nanosecond())<<32/1_000_000_000
}

// fromNTP is the time that NTP encodes, to the nanosecond. RFC 7011 does not say which era a number belongs to; a
// number that would be before 1968 belongs to the second era, which begins in 2036 (RFC 4330 §3).
func fromNTP(v uint64) time.Time {
	seconds := int64(v >> 32)
	if seconds < 1<<31 {
		seconds += 1 << 32
	}
	// Rounded up, since NTP rounds down and a nanosecond has more than four parts.
	nanos := ((v&math.MaxUint32)*1_000_000_000 + 1<<32 - 1) >> 32
	return time.Unix(seconds-ntpEpoch, int64(nanos)).UTC()
}
