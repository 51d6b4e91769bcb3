package beacon

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"heddle/internal/plan"
)

func sender(n byte) *Sender {
	s := &Sender{ID: [16]byte{n}}
	s.Key[0] = n
	return s
}

func TestS51_ABeaconIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9.-]{0,63}`)
		b := Beacon{plan.PortID{Switch: name.Draw(t, "switch"), Name: name.Draw(t, "uplink")},
			rapid.Uint16Range(0, 4094).Draw(t, "vlan"), rapid.Uint64().Draw(t, "round")}
		mac := plan.MAC{2, 0, 0, 0, 0, 9}
		s := sender(1)
		f := s.Frame(b, mac)
		head := append(bytes.Repeat([]byte{0xff}, 6), mac[:]...)
		if b.VLAN != 0 {
			head = append(head, 0x81, 0, byte(b.VLAN>>8), byte(b.VLAN))
		}
		head = append(head, 0x89, 0x22)
		if !bytes.HasPrefix(f, head) {
			t.Fatalf("frame begins %x, want %x", f[:20], head)
		}
		payload := append(f[len(head):], make([]byte, rapid.IntRange(0, 60).Draw(t, "padding"))...)
		if got, err := s.Read(payload); err != nil || got != b {
			t.Fatalf("%+v, %v; want %+v", got, err, b)
		}
		if _, err := sender(2).Read(payload); !errors.Is(err, ErrForeign) {
			t.Fatalf("another agent takes it: %v", err)
		}
		at := rapid.IntRange(0, len(f)-len(head)-1).Draw(t, "byte")
		payload[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if got, err := s.Read(payload); err == nil && at != 5 || at == 5 && err == nil {
			t.Fatalf("read with byte %d changed: %+v", at, got)
		}
	})
}

func TestS51_AKeyThatIsNotKnownCannotBeGuessedFromTheIdentity(t *testing.T) {
	forger := sender(1)
	forger.Key[31] ^= 1
	f := forger.Frame(Beacon{Uplink: plan.PortID{Switch: "s", Name: "u"}, Round: 5}, plan.MAC{})
	if _, err := sender(1).Read(f[14:]); !errors.Is(err, ErrForged) {
		t.Errorf("a forged beacon: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	s := sender(1)
	f.Add(s.Frame(Beacon{Uplink: plan.PortID{Switch: "s", Name: strings.Repeat("u", 63)}}, plan.MAC{})[14:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, p []byte) {
		b, err := s.Read(p)
		if err != nil {
			return
		}
		again := s.Frame(b, plan.MAC{})
		if !bytes.Contains(again, p[:min(len(p), 40)]) {
			t.Errorf("%x was read as %+v, which is written %x", p, b, again)
		}
	})
}
