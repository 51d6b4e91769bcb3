package migration

import (
	"math"
	"net"
	"testing"
	"time"
)

// packetTo is the head of an IPv4 frame.
func packetTo(to, from string, protocol byte) []byte {
	frame := make([]byte, 60)
	for i, m := range []string{to, from} {
		mac, err := net.ParseMAC(m)
		if err != nil {
			panic(err)
		}
		copy(frame[6*i:], mac)
	}
	frame[12], frame[23] = 8, protocol
	return frame
}

func TestAnEarTellsFramesApart(t *testing.T) {
	mac, err := net.ParseMAC(guestMAC)
	if err != nil {
		t.Fatal(err)
	}
	e := &ear{mac: mac}
	e.add(packetTo(guestMAC, outsideMAC, 17), 60, true, time.Unix(1, 0))
	e.add(packetTo(guestMAC, outsideMAC, 6), 1514, true, time.Unix(2, 0))
	e.add(packetTo(outsideMAC, guestMAC, 17), 61, false, time.Unix(3, 0))
	e.add(packetTo("ff:ff:ff:ff:ff:ff", guestMAC, 1), 62, false, time.Unix(4, 0))
	e.add(packetTo("01:00:5e:00:00:01", outsideMAC, 2), 63, true, time.Unix(5, 0))
	e.add(make([]byte, 14), 14, true, time.Unix(6, 0)) // nothing behind the header
	in, out := e.sums()
	if in != (counts{unicast: 1, broadcast: 1, classBytes + unicast: 61, classBytes + broadcast: 62}) {
		t.Errorf("received: %v", in)
	}
	if out != (counts{unicast: 3, allNodes: 1, classBytes + unicast: 1588, classBytes + allNodes: 63}) {
		t.Errorf("sent: %v", out)
	}
	list := e.told()
	if len(list) != 6 || len(e.told()) != 0 {
		t.Fatalf("%v", list)
	}
	for i, h := range list {
		if h.numbered != (i == 0 || i == 2) || h.guests != (i == 2 || i == 3) || h.at.Unix() != int64(i+1) {
			t.Errorf("frame %d: %+v", i+1, h)
		}
	}
}

// The guest stops at 1.000 s and runs again at 1.050. Its packets come each 10 ms; those that the source still delivers
// after the stop don't reach it.
func TestTheSilenceIsThatOfTheTapWhereTheGuestRuns(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(100, 0).Add(time.Duration(ms) * time.Millisecond) }
	x := &move{times: times{stopped: at(1000), runs: at(1050)}}
	var source, target []heard
	for ms := 500; ms <= 1020; ms += 10 {
		source = append(source, heard{at: at(ms + 5), out: true, numbered: true})
	}
	source = append(source, heard{at: at(1001), out: true}, heard{at: at(1002), guests: true})
	target = append(target, heard{at: at(1040), out: true}) // delivered before it ran there
	for ms := 1060; ms < 1500; ms += 10 {
		target = append(target, heard{at: at(ms), out: true, numbered: true})
	}
	if d, from := x.silence(source, target, at(500), at(1500)); d != 65*time.Millisecond || !from.Equal(at(995)) {
		t.Errorf("%v from %v", d, from)
	}
	if d, from := x.silence(source, nil, at(500), at(1500)); d != 505*time.Millisecond || !from.Equal(at(995)) {
		t.Errorf("nothing came again: %v from %v", d, from)
	}
	out := func(h heard) bool { return h.out }
	if d := x.beyond(source, target, out); math.Abs(d-0.015) > 1e-9 {
		t.Errorf("%v s beyond the pause", d)
	}
	if d := x.beyond(source, nil, out); !math.IsNaN(d) {
		t.Errorf("nothing came again, and that %v s beyond the pause", d)
	}
	wires := []heard{{at: at(999), guests: true}, {at: at(1010), guests: true}, {at: at(1011), guests: true, out: true},
		{at: at(1060), guests: true}}
	x.misplaced(source, target, wires, wires)
	if x.early != 1 || x.late != 4 || x.strayEarly != 2 || x.strayLate != 2 {
		t.Errorf("early %d and %d, late %d and %d", x.early, x.strayEarly, x.late, x.strayLate)
	}
}

func TestAServerInTheGuestSaysWhereItListens(t *testing.T) {
	list, err := listening(`{"listening":"10.7.0.1:5","sessions":["10.7.0.1:5","10.7.0.1:6"]}` + "\n")
	if err != nil || len(list) != 2 || list[1] != "10.7.0.1:6" {
		t.Errorf("%v, %v", list, err)
	}
	for _, line := range []string{"", "heddle: no such address", "{}"} {
		if _, err := listening(line); err == nil {
			t.Errorf("accepted: %q", line)
		}
	}
}

func TestAnEmulatedGuestCarriesLess(t *testing.T) {
	e := effort{moves: 3, rate: 2000, connections: 10, bulk: 50e6}.lighter()
	if e != (effort{moves: 3, rate: 100, connections: 1, bulk: 2.5e6}) {
		t.Errorf("%+v", e)
	}
}
