package hostdev

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// attr returns an attribute as the kernel encodes it: length, type, value, padding to four bytes.
func attr(kind uint16, value string) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	return append(b, make([]byte, (4-len(b)%4)%4)...)
}

func TestAttributesAreReadOneAfterTheOther(t *testing.T) {
	type seen struct {
		Kind  uint16
		Value string
	}
	read := func(b []byte) (got []seen, err error) {
		err = eachAttribute(b, func(kind uint16, v []byte) error {
			got = append(got, seen{kind, string(v)})
			return nil
		})
		return got, err
	}
	two := append(attr(3, "eth0\x00"), attr(unix.NLA_F_NESTED|18, "inside")...)
	for name, c := range map[string]struct {
		message []byte
		want    []seen
		err     error
	}{
		"nothing":                     {},
		"two, padded, flags off":      {two, []seen{{3, "eth0\x00"}, {18, "inside"}}, nil},
		"the last without padding":    {two[:len(two)-2], []seen{{3, "eth0\x00"}, {18, "inside"}}, nil},
		"less than a header follows":  {append(attr(3, "abcd"), 9, 9), []seen{{3, "abcd"}}, nil},
		"longer than the message":     {two[:len(two)-3], []seen{{3, "eth0\x00"}}, unix.EINVAL},
		"shorter than its own header": {[]byte{3, 0, 3, 0}, nil, unix.EINVAL},
		"no length at all":            {make([]byte, 8), nil, unix.EINVAL},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read(c.message)
			if d := cmp.Diff(c.want, got); d != "" || !errors.Is(err, c.err) {
				t.Errorf("error %v, want %v; -want +got:\n%s", err, c.err, d)
			}
		})
	}
	stop := errors.New("enough")
	if err := eachAttribute(two, func(uint16, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the caller's error: %v", err)
	}
}
