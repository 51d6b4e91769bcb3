package ipfix

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"net"
	"net/netip"
	"strconv"
	"time"
	"unicode/utf8"
)

// Value is one field of a record. Its bytes belong to the message.
type Value struct {
	Field Field // as in the template; the registry may not know its element
	Bytes []byte
}

// Element is what the registry knows of the value's element.
func (v Value) Element() Element { return v.Field.Element() }

// wrong is the error for reading a value as a type that it does not have.
func (v Value) wrong(as string) error {
	e := v.Element()
	return fmt.Errorf("%s (%s, %d bytes) is no %s", e, e.Type, len(v.Bytes), as)
}

// Unsigned is a number of 1–8 bytes, whatever the element's type (RFC 7011 §6.1.1, §6.2).
func (v Value) Unsigned() (uint64, error) {
	switch len(v.Bytes) {
	case 8:
		return binary.BigEndian.Uint64(v.Bytes), nil
	case 4:
		return uint64(binary.BigEndian.Uint32(v.Bytes)), nil
	case 1, 2, 3, 5, 6, 7:
		n := uint64(0)
		for _, b := range v.Bytes {
			n = n<<8 | uint64(b)
		}
		return n, nil
	}
	return 0, v.wrong("number of 1–8 bytes")
}

// Signed is a two's complement number of 1–8 bytes (RFC 7011 §6.1.1).
func (v Value) Signed() (int64, error) {
	n, err := v.Unsigned()
	if err != nil {
		return 0, err
	}
	unused := 64 - 8*len(v.Bytes)
	return int64(n<<unused) >> unused, nil
}

// Float is an IEEE number of 4 or 8 bytes (RFC 7011 §6.1.3, §6.1.4).
func (v Value) Float() (float64, error) {
	switch len(v.Bytes) {
	case 4:
		return float64(math.Float32frombits(binary.BigEndian.Uint32(v.Bytes))), nil
	case 8:
		return math.Float64frombits(binary.BigEndian.Uint64(v.Bytes)), nil
	}
	return 0, v.wrong("float of 4 or 8 bytes")
}

// Bool is true for the byte 1 and false for 2 (RFC 7011 §6.1.5).
func (v Value) Bool() (bool, error) {
	if len(v.Bytes) == 1 && (v.Bytes[0] == 1 || v.Bytes[0] == 2) {
		return v.Bytes[0] == 1, nil
	}
	return false, v.wrong("truth value, which is 1 or 2")
}

// Address is an IPv4 or IPv6 address, by its length (RFC 7011 §6.1.7, §6.1.8).
func (v Value) Address() (netip.Addr, error) {
	if a, ok := netip.AddrFromSlice(v.Bytes); ok {
		return a, nil
	}
	return netip.Addr{}, v.wrong("address of 4 or 16 bytes")
}

// MAC is an Ethernet address.
func (v Value) MAC() ([6]byte, error) {
	if len(v.Bytes) != 6 {
		return [6]byte{}, v.wrong("MAC of 6 bytes")
	}
	return [6]byte(v.Bytes), nil
}

// Text is a string of UTF-8; it is an error if it is not well formed (RFC 7011 §6.1.6).
func (v Value) Text() (string, error) {
	if !utf8.Valid(v.Bytes) {
		return "", v.wrong("well-formed UTF-8")
	}
	return string(v.Bytes), nil
}

// Time is a point in time, in the format of the element's type (RFC 7011 §6.1.9 and before): seconds, milliseconds, or
// NTP.
func (v Value) Time() (time.Time, error) {
	t := v.Element().Type
	if least, _ := t.Lengths(); len(v.Bytes) != least {
		return time.Time{}, v.wrong("time")
	}
	switch t {
	case DateTimeSeconds:
		return time.Unix(int64(binary.BigEndian.Uint32(v.Bytes)), 0).UTC(), nil
	case DateTimeMilliseconds:
		return time.UnixMilli(int64(binary.BigEndian.Uint64(v.Bytes))).UTC(), nil
	case DateTimeMicroseconds:
		// The lowest 11 bits are no part of the value (§6.1.9).
		return fromNTP(binary.BigEndian.Uint64(v.Bytes) &^ 0x7ff).Round(time.Microsecond), nil
	case DateTimeNanoseconds:
		return fromNTP(binary.BigEndian.Uint64(v.Bytes)), nil
	}
	return time.Time{}, v.wrong("time")
}

// String is the value for people, in the notation of its type; in hexadecimal if the type has none, or the value does
// not conform to it.
func (v Value) String() string {
	switch e := v.Element(); e.Type {
	case Unsigned8, Unsigned16, Unsigned32, Unsigned64:
		return orHex(v, v.Unsigned, func(n uint64) string { return strconv.FormatUint(n, 10) })
	case Signed8, Signed16, Signed32, Signed64:
		return orHex(v, v.Signed, func(n int64) string { return strconv.FormatInt(n, 10) })
	case Float32, Float64:
		return orHex(v, v.Float, func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) })
	case Boolean:
		return orHex(v, v.Bool, strconv.FormatBool)
	case MACAddress:
		return orHex(v, v.MAC, func(m [6]byte) string { return net.HardwareAddr(m[:]).String() })
	case String:
		return orHex(v, v.Text, strconv.Quote)
	case IPv4Address, IPv6Address:
		return orHex(v, v.Address, netip.Addr.String)
	case DateTimeSeconds, DateTimeMilliseconds, DateTimeMicroseconds, DateTimeNanoseconds:
		return orHex(v, v.Time, func(t time.Time) string { return t.Format(time.RFC3339Nano) })
	}
	return "0x" + hex.EncodeToString(v.Bytes)
}

// orHex shows what get returns, or else the bytes.
func orHex[T any](v Value, get func() (T, error), show func(T) string) string {
	x, err := get()
	if err != nil {
		return "0x" + hex.EncodeToString(v.Bytes)
	}
	return show(x)
}
