package export

import (
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/test/testkit/certs"
)

// A session that ends in order is ended by both sides: the exporter waits for the collector's goodbye, and does not
// answer it with a reset, at which a collector may forget what it has not read.
func TestTheCollectorsGoodbyeIsNotAnsweredWithAReset(t *testing.T) {
	a, at := certs.New(t, "site"), own(4795)
	server := a.Issue(at.Addr().String(), time.Hour).Server(t)
	l, err := net.Listen("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	verdict := make(chan error, 1)
	go func() { verdict <- hearOut(l, server) }()
	r := newRig(t, overTLS(&streamCollector{at: at}, files(t, t.TempDir(), a.PEM(), a.Issue("host1", time.Hour))))
	r.until("it is connected", sending)
	r.send(many(100)...)
	r.until("everything is confirmed", func(st Status) bool { return st.Waiting == (Loss{}) })
	r.x.Close(r.now)
	if err := <-verdict; err != nil {
		t.Errorf("after the collector's goodbye: %v", err)
	}
}

// hearOut is a collector of one session: it reads to the end, says goodbye, and gives the error that its socket has
// then.
func hearOut(l net.Listener, conf *tls.Config) error {
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	over := tls.Server(conn, conf)
	if _, err := io.Copy(io.Discard, over); err != nil {
		return err
	}
	if err := over.CloseWrite(); err != nil {
		return err
	}
	// Both are one read away: the reset of a socket that was closed, or the end of the stream.
	if _, err := io.Copy(io.Discard, conn); err != nil {
		return err
	}
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err
	}
	var fault int
	var late error
	if err := raw.Control(func(fd uintptr) {
		fault, late = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET,
			unix.SO_ERROR)
	}); err != nil || late != nil || fault == 0 {
		return late
	}
	return unix.Errno(fault)
}
