package udpbatch

import (
	"bytes"
	"net/netip"
	"testing"
	"time"
)

// A Receiver passes on the same datagrams, with fewer calls.
func TestReceiverReadsWhatCameInOnePiece(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		to := listen(t, at)
		r, err := NewReceiver(to)
		if err != nil {
			t.Fatal(err)
		}
		s := dial(t, to.LocalAddr())
		b := batch(append(times(100, 300), 299, 1400, 1400, 7, 65507)...)
		s.all(t, b)
		if err := to.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		calls, got := 0, 0
		for ; got < b.Len(); calls++ {
			if err := r.Receive(func(from netip.AddrPort, d []byte) {
				if !bytes.Equal(d, b.Datagram(got)) ||
					from.Port() != s.conn.LocalAddr().(interface{ AddrPort() netip.AddrPort }).AddrPort().Port() {
					t.Fatalf("%s: datagram %d: %d bytes from %v", at, got, len(d), from)
				}
				got++
			}); err != nil {
				t.Fatalf("%s: datagram %d: %v", at, got, err)
			}
		}
		if got != b.Len() || calls > 8 {
			t.Errorf("%s: %d datagrams with %d calls", at, got, calls)
		}
	}
}

// An empty datagram is one, and one that comes alone comes as it is.
func TestReceiverReadsSingleDatagrams(t *testing.T) {
	to := listen(t, "127.0.0.1:0")
	r, err := NewReceiver(to)
	if err != nil {
		t.Fatal(err)
	}
	s := dial(t, to.LocalAddr())
	if err := to.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{5, 0, 1400} {
		if _, err := s.conn.Write(make([]byte, n)); err != nil {
			t.Fatal(err)
		}
		got := []int{}
		if err := r.Receive(func(_ netip.AddrPort, d []byte) { got = append(got, len(d)) }); err != nil ||
			len(got) != 1 || got[0] != n {
			t.Errorf("a datagram of %d bytes came as %v: %v", n, got, err)
		}
	}
}
