package ipfix

import (
	"math"
	"testing"
	"time"
)

func value(t *testing.T, name, hex string) Value {
	t.Helper()
	e, ok := Named(name)
	if !ok {
		t.Fatalf("no element %s", name)
	}
	b := unhex(t, hex)
	return Value{Field{e.PEN, e.ID, uint16(len(b))}, b}
}

func TestValuesAreShownByTheirType(t *testing.T) {
	for _, c := range []struct{ name, bytes, want string }{
		{"octetDeltaCount", "0102030405060708", "72623859790382856"},
		{"octetDeltaCount", "010203", "66051"},
		{"octetDeltaCount", "", "0x"},
		{"mibObjectValueInteger", "ffffffff", "-1"},
		{"mibObjectValueInteger", "ff7f", "-129"},
		{"samplingProbability", "3fe0000000000000", "0.5"},
		{"samplingProbability", "3f000000", "0.5"},
		{"dataRecordsReliability", "01", "true"},
		{"dataRecordsReliability", "02", "false"},
		{"dataRecordsReliability", "00", "0x00"},
		{"sourceMacAddress", "020000000001", "02:00:00:00:00:01"},
		{"sourceMacAddress", "0200", "0x0200"},
		{"interfaceName", "6574c3a9", `"eté"`},
		{"interfaceName", "ff", "0xff"},
		{"sourceIPv4Address", "c0000201", "192.0.2.1"},
		{"sourceIPv4Address", "c00002", "0xc00002"},
		{"sourceIPv6Address", "20010db8000000000000000000000001", "2001:db8::1"},
		{"flowStartSeconds", "6553f100", "2023-11-14T22:13:20Z"},
		{"flowStartMilliseconds", "0000018bcfe56a8b", "2023-11-14T22:13:20.651Z"},
		{"flowStartMilliseconds", "6553f100", "0x6553f100"},
		{"flowStartMicroseconds", "e8fe6f8080000000", "2023-11-14T22:13:20.5Z"},
		{"flowStartNanoseconds", "e8fe6f8080000000", "2023-11-14T22:13:20.5Z"},
		{"paddingOctets", "0000", "0x0000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := value(t, c.name, c.bytes).String(); got != c.want {
				t.Errorf("%s %s is shown as %s, want %s", c.name, c.bytes, got, c.want)
			}
		})
	}
}

func TestValuesAreNotReadAsWhatTheyAreNot(t *testing.T) {
	v := value(t, "interfaceName", "616263646566676869")
	for name, read := range map[string]func() error{
		"Unsigned": func() error { _, err := v.Unsigned(); return err },
		"Signed":   func() error { _, err := v.Signed(); return err },
		"Float":    func() error { _, err := v.Float(); return err },
		"Bool":     func() error { _, err := v.Bool(); return err },
		"Address":  func() error { _, err := v.Address(); return err },
		"MAC":      func() error { _, err := v.MAC(); return err },
		"Time":     func() error { _, err := v.Time(); return err },
	} {
		t.Run(name, func(t *testing.T) {
			if err := read(); err == nil {
				t.Errorf("%s reads a name of 9 bytes", name)
			}
		})
	}
}

func TestNTPKeepsNanoseconds(t *testing.T) {
	for _, at := range []time.Time{
		time.Date(1968, 1, 20, 3, 14, 8, 0, time.UTC), time.Unix(0, 1), time.Unix(1700000000, 999999999),
		time.Unix(1700000000, 123456789),
		time.Date(2036, 2, 7, 6, 28, 15, 999999999, time.UTC), time.Date(2036, 2, 7, 6, 28, 16, 0, time.UTC),
		time.Date(2100, 1, 1, 0, 0, 0, 7, time.UTC),
	} {
		if got := fromNTP(NTP(at)); !got.Equal(at) {
			t.Errorf("%v becomes %v", at.UTC(), got)
		}
	}
	if got := NTP(time.Date(1970, 1, 1, 0, 0, 0, 5e8, time.UTC)); got != 2208988800<<32|1<<31 {
		t.Errorf("half a second after 1970 is %#x", got)
	}
	if fromNTP(math.MaxUint64).IsZero() {
		t.Error("the last time is none")
	}
}
