package export

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// TLS is the files by which this host recognizes a collector and identifies itself; they are read anew for each
// session.
type TLS struct {
	// certificates of the authorities that may have issued the collector's; "" = those that the host trusts
	CA          string
	Certificate string // what this host presents to a collector that asks
	Key         string
	ServerName  string // what the collector's certificate must be for; "" = the collector's address
}

// identity is the state of the files at one time: if it changes, a new session begins.
type identity struct {
	TLS
	of [3]fileStamp
}

type fileStamp struct {
	inode    uint64
	size     int64
	modified int64
}

// stamped is the present state of the files.
func (t TLS) stamped() identity {
	id := identity{TLS: t}
	for i, name := range []string{t.CA, t.Certificate, t.Key} {
		var st unix.Stat_t
		if name != "" && unix.Stat(name, &st) == nil {
			id.of[i] = fileStamp{st.Ino, st.Size, st.Mtim.Nano()}
		}
	}
	return id
}

// config reads the files.
func (t TLS) config(address string, now time.Time) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if c.ServerName == "" {
		c.ServerName = strings.TrimSuffix(address, ".")
	}
	if t.CA != "" {
		pem, err := readSmall(t.CA, false)
		if err != nil {
			return nil, fmt.Errorf("ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca: %s has no certificate in PEM form", t.CA)
		}
	}
	if t.Certificate == "" {
		return c, nil
	}
	own, err := t.own(now)
	if err != nil {
		return nil, err
	}
	c.Certificates = []tls.Certificate{own}
	return c, nil
}

// own reads this host's certificate and key. An error about the key's file never quotes its content.
func (t TLS) own(now time.Time) (tls.Certificate, error) {
	chain, err := readSmall(t.Certificate, false)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("certificate: %w", err)
	}
	key, err := readSmall(t.Key, true)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("key: %w", err)
	}
	own, err := tls.X509KeyPair(chain, key)
	switch {
	case err != nil:
		return own, fmt.Errorf("certificate %s and key %s: %w", t.Certificate, t.Key, err)
	case now.After(own.Leaf.NotAfter):
		return own, fmt.Errorf("certificate %s has expired on %s: renew it", t.Certificate, day(own.Leaf.NotAfter))
	case now.Before(own.Leaf.NotBefore):
		return own, fmt.Errorf("certificate %s is not valid before %s: is the clock right?", t.Certificate,
			day(own.Leaf.NotBefore))
	}
	return own, nil
}

// mostPEM is the maximal length of a file with certificates or a key.
const mostPEM = 1 << 20

// readSmall reads a whole file. If it is secret, others must not be able to read it.
func readSmall(name string, secret bool) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch mode := st.Mode(); {
	case !mode.IsRegular():
		return nil, fmt.Errorf("%s is no file", name)
	case st.Size() > mostPEM:
		return nil, fmt.Errorf("%s is %d bytes long, too long for what it should be", name, st.Size())
	case secret && mode.Perm()&0o027 != 0:
		return nil, fmt.Errorf("%s can be read or changed by others (its mode is %04o): chmod 600 %s", name,
			mode.Perm(), name)
	}
	return io.ReadAll(io.LimitReader(f, mostPEM))
}

// connect makes the connection of a session.
func (s *stream) connect(ctx context.Context, remote netip.AddrPort) (*line, error) {
	ctx, cancel := context.WithTimeout(ctx, s.pace.connect)
	defer cancel()
	l := &line{ended: make(chan struct{}), identity: s.tls.stamped()}
	var conf *tls.Config
	if s.to.Transport == OverTLS {
		var err error
		if conf, err = s.tls.config(s.to.Address, time.Now()); err != nil {
			return nil, err
		}
	}
	w, err := s.dial(ctx, remote, s.source, s.pace.dead)
	if err != nil {
		return nil, connectFault(err, remote, s.pace.connect)
	}
	l.wire, l.to = w, w
	if conf != nil {
		if err := l.handshake(ctx, conf); err != nil {
			w.abort()
			return nil, tlsFault(err, s.tls)
		}
	}
	w.release()
	return l, nil
}

// connectFault says in plain words why there is no connection.
func connectFault(err error, remote netip.AddrPort, within time.Duration) error {
	var late net.Error
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("nobody listens at %s over TCP (connection refused)", remote)
	case errors.As(err, &late) && late.Timeout():
		return fmt.Errorf("%s does not answer within %v", remote, within)
	}
	return err
}

// handshake begins TLS.
func (l *line) handshake(ctx context.Context, conf *tls.Config) error {
	asked := false
	own := conf.Certificates
	conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if asked = true; len(own) == 0 {
			return &tls.Certificate{}, nil
		}
		return &own[0], nil
	}
	c := tls.Client(l.wire, conf)
	if err := c.HandshakeContext(ctx); err != nil {
		return err
	}
	l.asked = asked && c.ConnectionState().Version >= tls.VersionTLS13
	l.to = c
	return nil
}

// tlsFault says in plain words what is wrong with a certificate, and what to do.
func tlsFault(err error, t TLS) error {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		noTLS     tls.RecordHeaderError
		op        *net.OpError
	)
	switch {
	case errors.As(err, &name):
		return fmt.Errorf("the collector's certificate is for %s and not for %s: set serverName to a name that it "+
			"has, if this is the right collector",
			namesOf(name.Certificate), name.Host)
	case errors.As(err, &authority):
		return fmt.Errorf("the collector's certificate is by an authority that %s does not have (%w)", authorities(t),
			authority)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Errorf("the collector's certificate is valid from %s to %s, which is not now: renew it there, or "+
			"set the clock right",
			day(invalid.Cert.NotBefore), day(invalid.Cert.NotAfter))
	case errors.As(err, &noTLS):
		return errors.New("what the collector answers is not TLS: does it want transport: tcp, or another port?")
	case errors.As(err, &op) && op.Op == "remote error":
		return fmt.Errorf("the collector has refused this host: %w: see what it asks for, and certificate and key",
			op.Err)
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("the collector does not answer as TLS does: does it want transport: tcp?")
	case errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET):
		return errors.New("the collector has ended the connection during the TLS handshake: does it want transport: " +
			"tcp, or certificate and key?")
	}
	return err
}

func authorities(t TLS) string {
	if t.CA == "" {
		return "this host (ca is not set)"
	}
	return t.CA
}

// mostNames limits how much of a stranger's certificate an error message quotes.
const mostNames = 5

// namesOf are the names and addresses that a certificate is for.
func namesOf(c *x509.Certificate) string {
	names := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return "no name"
	}
	more := ""
	if len(names) > mostNames {
		more = fmt.Sprintf(" and %d more", len(names)-mostNames)
		names = names[:mostNames]
	}
	for i, n := range names {
		names[i] = fmt.Sprintf("%q", n[:min(len(n), 100)])
	}
	return strings.Join(names, ", ") + more
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") }
