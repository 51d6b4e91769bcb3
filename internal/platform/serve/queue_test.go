package serve

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

// hello is what a client says first.
func hello(t *testing.T) []byte {
	t.Helper()
	here, there := net.Pipe()
	var done sync.WaitGroup
	done.Go(func() {
		_ = tls.Client(here, &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true}).Handshake() // cut off
	})
	b := make([]byte, 4096)
	n := must(there.Read(b))(t)
	_ = there.Close()
	done.Wait()
	return b[:n]
}

// from dials from an address of the loopback.
func from(t *testing.T, address, to string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	c := must(d.Dial("tcp", to))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// However many connections of one network say hello and go no further, one of another network has its turn before them.
func TestS135_HellosOfOneNetworkKeepNoOtherOut(t *testing.T) {
	cert := selfSigned(t)
	conf := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, nil }}
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	d := NewListener(l, conf, NewRefusals(slog.New(slog.DiscardHandler)), Bounds{})
	t.Cleanup(func() { _ = l.Close() })
	first := hello(t)
	for range mostQueued + 2*seats {
		_, _ = from(t, "127.0.0.2", l.Addr().String()).Write(first) // one that was sent away hears nothing
	}
	awaitListener(t, func() bool { return d.queue.size() > mostQueued/2 })
	c := tls.Client(from(t, "127.0.0.3", l.Addr().String()), &tls.Config{MinVersion: tls.VersionTLS13,
		InsecureSkipVerify: true})
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	for {
		in := must(d.Accept())(t)
		if strings.HasPrefix(in.RemoteAddr().String(), "127.0.0.3:") {
			break
		}
	}
	if n := d.queue.size(); n < mostQueued/8 {
		t.Errorf("of those before it %d wait: it waited for them", n)
	}
}

// A queue that is full sends away the last of the network that has most waiting, if that has more than its part.
func TestQueue_WhoIsSentAway(t *testing.T) {
	q := newQueue(4, 2, 1)
	if !q.enter("192.0.2.1:1") { // the one seat
		t.Fatal("it is sent away")
	}
	came := make(chan string, 8)
	comes := func(from string, in int) {
		go func() {
			if q.enter(from) {
				came <- from
			} else {
				came <- "not " + from
			}
		}()
		awaitListener(t, func() bool { q.mu.Lock(); defer q.mu.Unlock(); return q.waiting.Len() == in })
	}
	for i := range 3 {
		comes("192.0.2.1:1", i+1)
	}
	comes("192.0.2.2:1", 3)
	if got := <-came; got != "not 192.0.2.1:1" {
		t.Errorf("who goes is %s", got)
	}
	for _, want := range []string{"192.0.2.1:1", "192.0.2.2:1", "192.0.2.1:1"} {
		q.rise()
		if got := <-came; got != want {
			t.Errorf("it is the turn of %s, and %s has it", want, got)
		}
	}
}

// A crowd that is full ends the oldest connection of the network that has most of them.
func TestS135_ConnectionsOfOneNetworkEndNoOthers(t *testing.T) {
	c := newCrowd(4)
	closed := ""
	visit := func(name, network string) *visitor {
		here, there := net.Pipe()
		t.Cleanup(func() { _, _ = here.Close(), there.Close() })
		d := &Listener{waiting: c, proving: newCrowd(1), guests: newCrowd(1), known: newCrowd(1)}
		return &visitor{Conn: &parting{here, func() { closed += name + " " }}, of: d,
			from: netip.MustParseAddr(network)}
	}
	c.enter(visit("host", "192.0.2.9"))
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		c.enter(visit(name, "192.0.2.1"))
	}
	if closed != "a b " || c.size() != 4 {
		t.Errorf("%sare ended, %d are left", closed, c.size())
	}
}

// parting is a connection that says when it ends.
type parting struct {
	net.Conn
	ends func()
}

func (l *parting) Close() error {
	l.ends()
	return l.Conn.Close()
}
