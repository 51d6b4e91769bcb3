package cable

import "testing"

// A frame is a test's by its type behind the tags, and not by a number elsewhere: an IPv4 packet may be identified by
// the same two bytes.
func TestTypeOf(t *testing.T) {
	head := []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1}
	for _, c := range []struct {
		name string
		rest []byte
		want uint16
	}{
		{"without a tag", []byte{0x88, 0xb5, 0, 0}, frameType},
		{"with a tag", []byte{0x81, 0, 0, 10, 0x88, 0xb5, 0, 0}, frameType},
		{"with two tags", []byte{0x88, 0xa8, 0, 10, 0x81, 0, 0, 20, 0x88, 0xb5}, frameType},
		{"an IPv4 packet", []byte{8, 0, 0x45, 0, 0, 0x2e, 0x88, 0xb5, 0x40, 0}, 0x0800},
		{"cut off within a tag", []byte{0x81, 0, 0, 10}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := typeOf(append(head[:len(head):len(head)], c.rest...)); got != c.want {
				t.Errorf("0x%04x, want 0x%04x", got, c.want)
			}
		})
	}
}
