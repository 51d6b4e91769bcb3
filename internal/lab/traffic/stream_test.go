package traffic

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestNagleIsOffUnlessAskedFor(t *testing.T) {
	sink, err := Listen(Endpoint{}, SinkOptions{Kind: KindStream, At: netip.MustParseAddrPort("127.0.0.1:0")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = sink.Finish() }()
	for _, nagle := range []bool{false, true} {
		fd, err := dialStream(&halt{}, Load{Nagle: nagle}, sink.Addr())
		if err != nil {
			t.Fatal(err)
		}
		off, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY)
		unix.Close(fd)
		if err != nil || (off == 0) != nagle {
			t.Errorf("TCP_NODELAY is %d with Nagle %v, %v", off, nagle, err)
		}
		if args := (Load{Kind: KindStream, Nagle: nagle}).Args(nil); slices.Contains(args, "--nagle") != nagle {
			t.Errorf("a process is asked with %q for Nagle %v", args, nagle)
		}
	}
}

func TestSmallWritesAreCountedInSegments(t *testing.T) {
	for name, measure := range map[string]measureFunc{"here": Measure, "by processes": processes(t).Measure} {
		t.Run(name, func(t *testing.T) {
			load := short(KindStream)
			load.Size, load.Nagle, load.Sessions = 1, true, 2
			res, _ := measured(t, measure, loopback, load, carries(1, 1))
			if s := res.Stream; s.Segments == 0 || s.Segments > s.Bytes+s.Retransmits+1<<16 {
				t.Errorf("%s: %d segments for %d bytes", name, s.Segments, s.Bytes)
			}
		})
	}
}

func TestWhatIsForStreamsOnlyIsChecked(t *testing.T) {
	for says, l := range map[string]Load{
		"Nagle is a matter of streams":           {Kind: KindRR, Nagle: true},
		"gathering bytes is a matter of streams": {Kind: KindUDP, Gather: 1},
		"-1 bytes to gather":                     {Kind: KindStream, Gather: -1}, "want 0–1048576": {Kind: KindStream,
			Gather: 1<<20 + 1},
	} {
		t.Run(says, func(t *testing.T) {
			if _, err := Measure(context.Background(), loopback, l); err == nil ||
				!strings.Contains(err.Error(), says) {
				t.Errorf("%+v: %v, want %q", l, err, says)
			}
		})
	}
}

// A receiver that gathers is not woken by less, but still gets everything.
func TestAReceiverThatGathersMissesNothing(t *testing.T) {
	for name, measure := range map[string]measureFunc{"here": Measure, "by processes": processes(t).Measure} {
		t.Run(name, func(t *testing.T) {
			load := short(KindStream)
			load.Size, load.Nagle, load.Gather = 64, true, 16<<10
			res, _ := measured(t, measure, loopback, load, carries(1, 1))
			if res.Stream.Bytes == 0 || res.Sink.Bytes < res.Stream.Bytes || res.Sink.Bytes%64 != 0 {
				t.Errorf("%s: %d bytes acknowledged in the interval, %d read", name, res.Stream.Bytes, res.Sink.Bytes)
			}
		})
	}
	sink, err := Listen(Endpoint{}, SinkOptions{Kind: KindStream, At: netip.MustParseAddrPort("127.0.0.1:0"),
		Gather: 4711})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = sink.Finish() }()
	if n, err := unix.GetsockoptInt(sink.fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT); err != nil || n != 4711 {
		t.Errorf("the sink is woken by %d bytes, %v", n, err)
	}
}

// What does not fit into the socket's buffer at once follows whole and in order.
func TestMessagesArriveWholeThroughASmallBuffer(t *testing.T) {
	for _, size := range []int{1, 64, 3000, 100000} {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_SNDBUF, 1); err != nil { // the least there is
			t.Fatal(err)
		}
		message := make([]byte, size)
		for i := range message {
			message[i] = byte(i % 251)
		}
		failed := make(chan error, 1)
		go func() {
			defer unix.Close(fds[0])
			for range 50 {
				rest, err := writeSome(fds[0], message, nil)
				for err == nil && len(rest) > 0 {
					rest, err = writeSome(fds[0], message, rest)
				}
				if err != nil {
					failed <- err
					return
				}
			}
			failed <- nil
		}()
		total, buf := 0, make([]byte, 777)
		for {
			n, err := unix.Read(fds[1], buf)
			if err != nil || n == 0 {
				break
			}
			for i, b := range buf[:n] {
				if want := byte((total + i) % size % 251); b != want {
					t.Fatalf("size %d: byte %d is %d, want %d", size, total+i, b, want)
				}
			}
			total += n
		}
		unix.Close(fds[1])
		if err := <-failed; err != nil || total < 50*size || total%size != 0 {
			t.Errorf("size %d: %d bytes came, %v", size, total, err)
		}
	}
}
