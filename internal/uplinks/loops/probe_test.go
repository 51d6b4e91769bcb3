package loops

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

func testSender(n byte) *Sender {
	s := &Sender{ID: [16]byte{n, 2, 3, 4, 5, 6}}
	s.Key[0] = n
	return s
}

func TestS110_AProbeIsReadAsItWasWrittenAndCannotBeForged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Probe{rapid.Bool().Draw(t, "uplink"), rapid.Uint32().Draw(t, "number"),
			rapid.Uint16Range(0, 4094).Draw(t, "vlan"), rapid.Bool().Draw(t, "ad"), rapid.Uint64().Draw(t, "round")}
		s := testSender(1)
		f := s.Frame(p, true)
		head := append(bytes.Repeat([]byte{0xff}, 6), 2, 2, 3, 4, 5, 6)
		switch {
		case p.VLAN != 0 && p.AD:
			head = append(head, 0x88, 0xa8, byte(p.VLAN>>8), byte(p.VLAN))
		case p.VLAN != 0:
			head = append(head, 0x81, 0, byte(p.VLAN>>8), byte(p.VLAN))
		}
		head = append(head, 0x88, 0xb5, 'H', 'd', 'L', 'p')
		if !bytes.HasPrefix(f, head) {
			t.Fatalf("frame begins %x, want %x", f[:22], head)
		}
		payload := f[len(head)-4:]
		if got, err := s.Read(payload); err != nil || got != p {
			t.Fatalf("%+v, %v; want %+v", got, err, p)
		}
		if _, err := testSender(9).Read(payload); !errors.Is(err, ErrForeign) {
			t.Fatalf("another agent takes it: %v", err)
		}
		forger := testSender(1)
		forger.Key[31] ^= 1
		if _, err := s.Read(forger.Frame(p, false)[14:]); !errors.Is(err, ErrForged) {
			t.Fatalf("a forged probe: %v", err)
		}
		at := rapid.IntRange(0, len(payload)-1).Draw(t, "byte")
		payload[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if got, err := s.Read(payload); err == nil {
			t.Fatalf("read with byte %d changed: %+v", at, got)
		}
	})
}

func FuzzRead(f *testing.F) {
	s := testSender(1)
	f.Add(s.Frame(Probe{Number: 7, VLAN: 10, Round: 3}, false)[14:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := s.Read(b)
		if err == nil && !bytes.Equal(s.Frame(p, false)[14:], b[:probeLen]) {
			t.Errorf("%x was read as %+v", b, p)
		}
	})
}
