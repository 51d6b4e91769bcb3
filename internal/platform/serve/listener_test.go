package serve

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"heddle/internal/identity"
)

// More hosts than a controller can shake hands with at a time come at once: each has its turn, and none is sent away.
func TestListener_AllHostsThatComeAtOnceHaveTheirTurn(t *testing.T) {
	const hosts = 700
	cert := selfSigned(t)
	release := make(chan struct{})
	conf := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert},
		ClientAuth: tls.RequestClientCert}
	served := conf.Clone()
	served.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		<-release
		return conf, nil
	}
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	d := NewListener(l, served, NewRefusals(slog.New(slog.DiscardHandler)), Bounds{})
	t.Cleanup(func() { _ = l.Close() })
	var taken sync.WaitGroup
	taken.Go(func() {
		for range hosts {
			if c, err := d.Accept(); err != nil {
				t.Error(err)
			} else if _, err := c.Write([]byte{1}); err != nil {
				t.Error(err)
			}
		}
	})
	var came sync.WaitGroup
	computing := make(chan struct{}, 2*handshakes) // hellos, of one machine here
	for range hosts {
		computing <- struct{}{}
		raw := must(net.Dial("tcp", l.Addr().String()))(t)
		came.Go(func() {
			c := tls.Client(&greeting{raw, sync.OnceFunc(func() { <-computing })}, &tls.Config{
				MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, Certificates: []tls.Certificate{cert}})
			if _, err := io.ReadFull(c, make([]byte, 1)); err != nil { // it is let in
				t.Error(err)
			}
		})
	}
	awaitListener(t, func() bool { return d.queue.size() >= hosts-handshakes || t.Failed() })
	close(release)
	came.Wait()
	if t.Failed() {
		t.FailNow()
	}
	taken.Wait()
	if n := d.proving.size() + d.waiting.size() + d.queue.size() + len(d.slots) + d.queue.taken(seats); n != 0 {
		t.Errorf("%d are still at the door", n)
	}
}

// awaitListener waits until a door has come so far.
func awaitListener(t *testing.T, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the door does not come so far")
		}
	}
}

// starved is a listener of a process that has no descriptor left until somebody is ended.
type starved struct {
	net.Listener
	left atomic.Int64 // of failures
}

func (s *starved) Accept() (net.Conn, error) {
	if s.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return s.Listener.Accept()
}

// A process that has no descriptor left ends who has said nothing for longest, and goes on.
func TestS104_WithoutDescriptorsTheOldestIdleConnectionsEnd(t *testing.T) {
	cert := selfSigned(t)
	l := &starved{Listener: must(net.Listen("tcp", "127.0.0.1:0"))(t)}
	d := NewListener(l, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, nil }},
		NewRefusals(slog.New(slog.DiscardHandler)), Bounds{})
	t.Cleanup(func() { _ = l.Close() })
	var idle []net.Conn
	for range 3 {
		c := must(net.Dial("tcp", l.Addr().String()))(t)
		t.Cleanup(func() { _ = c.Close() })
		idle = append(idle, c)
		awaitListener(t, func() bool { return d.waiting.size() >= len(idle) })
	}
	l.left.Store(2)
	came, conf := make(chan error, 1), &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true}
	go func() { // the first takes the accept that is under way
		for range 2 {
			c, err := tls.Dial("tcp", l.Addr().String(), conf)
			if err == nil {
				err = c.Close()
			}
			if err != nil {
				came <- err
				return
			}
		}
		came <- nil
	}()
	if _, err := idle[0].Read(make([]byte, 1)); err == nil {
		t.Error("the oldest is told something")
	}
	if _, err := idle[1].Read(make([]byte, 1)); err == nil {
		t.Error("the next one is told something")
	}
	if err := <-came; err != nil {
		t.Errorf("who comes then: %v", err)
	}
}

// greeting is a connection that tells when the first of it was written.
type greeting struct {
	net.Conn
	said func()
}

func (g *greeting) Write(b []byte) (int, error) {
	defer g.said()
	return g.Conn.Write(b)
}

// Who leaves while it waits for its turn takes none.
func TestListener_WhoLeavesTakesNoTurn(t *testing.T) {
	cert := selfSigned(t)
	release, asked := make(chan struct{}), make(chan struct{}, 2*handshakes)
	conf := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			asked <- struct{}{}
			<-release
			return nil, nil
		}}
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	d := NewListener(l, conf, NewRefusals(slog.New(slog.DiscardHandler)), Bounds{})
	t.Cleanup(func() { _ = l.Close() })
	client := &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true}
	var ended sync.WaitGroup
	for i := range 2 * handshakes {
		c := tls.Client(must(net.Dial("tcp", l.Addr().String()))(t), client)
		ended.Go(func() { _ = c.Handshake() }) // however that ends
		if i < handshakes {
			<-asked
			t.Cleanup(func() { _ = c.Close() })
			continue
		}
		awaitListener(t, func() bool { return d.queue.size() > i-handshakes })
		if err := c.NetConn().Close(); err != nil {
			t.Error(err)
		}
	}
	close(release)
	awaitListener(t, func() bool { return d.queue.size() == 0 && len(d.slots) == 0 })
	ended.Wait()
	if n := len(asked); n != 0 {
		t.Errorf("%d that had left had a handshake computed", n)
	}
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key := must(identity.NewKey())(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der := must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key.PrivateKey))(t)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key.PrivateKey}
}
