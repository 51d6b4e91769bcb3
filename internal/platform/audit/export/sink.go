package export

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"heddle/internal/platform/audit"
)

// sink takes lines in order. After an error those of that call are sent again, so that some may arrive twice.
type sink interface {
	send(ctx context.Context, lines []audit.Line) error
	close() error
}

// Times of deliveries.
const (
	dialTime = 10 * time.Second
	sendTime = 30 * time.Second
)

// open makes the sink of a target.
func (t *Target) open(controller string, stdout io.Writer) (sink, error) {
	switch t.Kind {
	case "stdout":
		return &writer{controller: controller, to: stdout}, nil
	case "file":
		return &file{controller: controller, path: t.Address}, nil
	case "https":
		conf, err := t.tls("")
		if err != nil {
			return nil, err
		}
		return &collector{controller: controller, target: t, client: &http.Client{Timeout: sendTime,
			Transport: &http.Transport{TLSClientConfig: conf, ForceAttemptHTTP2: true,
				Proxy: http.ProxyFromEnvironment},
			// Another place would get the token as well.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
	}
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	return &syslog{controller: controller, host: host, target: t}, nil
}

// tls is how the target is talked to. name is that of the other side, "" for what the client finds out.
func (t *Target) tls(name string) (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name}
	if t.CA != "" {
		text, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("the authorities of %s: %w", t, err)
		}
		if conf.RootCAs = x509.NewCertPool(); !conf.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s has no certificate", t.CA)
		}
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("the certificate for %s: %w", t, err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf, nil
}

// jsonLines are lines in JSON, each with a line feed.
func jsonLines(controller string, lines []audit.Line) []byte {
	var b bytes.Buffer
	for _, l := range lines {
		b.Write(jsonLine(controller, l))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// writer writes to the program's output.
type writer struct {
	controller string
	to         io.Writer
}

func (w *writer) send(_ context.Context, lines []audit.Line) error {
	_, err := w.to.Write(jsonLines(w.controller, lines))
	return err
}

func (w *writer) close() error { return nil }

// file adds to a file, which others may rename or remove meanwhile.
type file struct {
	controller, path string
	f                *os.File
}

func (s *file) send(_ context.Context, lines []audit.Line) error {
	if s.f != nil {
		have, err := s.f.Stat()
		now, gone := os.Stat(s.path)
		if err != nil || gone != nil || !os.SameFile(have, now) {
			if err := s.close(); err != nil {
				return err
			}
		}
	}
	if s.f == nil {
		f, err := os.OpenFile(s.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		s.f = f
	}
	before, err := s.f.Stat()
	if err != nil {
		return err
	}
	if _, err := s.f.Write(jsonLines(s.controller, lines)); err != nil {
		return errors.Join(err, s.f.Truncate(before.Size())) // no half lines
	}
	return s.f.Sync()
}

func (s *file) close() error {
	if s.f == nil {
		return nil
	}
	err := s.f.Close()
	s.f = nil
	return err
}

// collector takes lines by POST, as application/x-ndjson.
type collector struct {
	controller string
	target     *Target
	client     *http.Client
}

func (c *collector) send(ctx context.Context, lines []audit.Line) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.target.URL, bytes.NewReader(jsonLines(c.controller,
		lines)))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-ndjson")
	if c.target.TokenFile != "" {
		token, err := os.ReadFile(c.target.TokenFile)
		if err != nil {
			return fmt.Errorf("the token for %s: %w", c.target, err)
		}
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := c.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 200))
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s answers %s: %s", c.target, resp.Status, bytes.TrimSpace(text))
	}
	return err
}

func (c *collector) close() error {
	c.client.CloseIdleConnections()
	return nil
}

// syslog sends messages of RFC 5424: by UDP one in each datagram (RFC 5426), by TCP and TLS with their length before
// them (RFC 5425, RFC 6587).
type syslog struct {
	controller, host string
	target           *Target
	conn             net.Conn
	ended            chan struct{} // closed when the other side has ended the connection
}

func (s *syslog) send(ctx context.Context, lines []audit.Line) error {
	if err := s.dial(ctx); err != nil {
		return err
	}
	if err := s.conn.SetWriteDeadline(time.Now().Add(sendTime)); err != nil {
		return err
	}
	var err error
	if s.target.Kind == "udp" {
		for _, l := range lines {
			if _, e := s.conn.Write(syslogLine(s.host, s.controller, l, longestDatagram)); e != nil {
				err = e
				break
			}
		}
	} else {
		var b bytes.Buffer
		for _, l := range lines {
			text := syslogLine(s.host, s.controller, l, 0)
			fmt.Fprintf(&b, "%d ", len(text))
			b.Write(text)
		}
		_, err = s.conn.Write(b.Bytes())
	}
	if err != nil {
		return errors.Join(err, s.close())
	}
	return nil
}

// dial makes the connection, where there is none that lasts.
func (s *syslog) dial(ctx context.Context) error {
	select {
	case <-s.ended: // what was written last may be lost: nothing in the protocol would say so
		if err := s.close(); err != nil {
			return err
		}
	default:
	}
	if s.conn != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	network := s.target.Kind
	if network == "tls" {
		network = "tcp"
	}
	conn, err := (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext(ctx, network, s.target.Address)
	if err != nil {
		return err
	}
	if s.target.Kind == "tls" {
		host, _, _ := net.SplitHostPort(s.target.Address)
		conf, err := s.target.tls(host)
		if err != nil {
			return errors.Join(err, conn.Close())
		}
		secure := tls.Client(conn, conf)
		if err := secure.HandshakeContext(ctx); err != nil {
			return errors.Join(err, conn.Close())
		}
		conn = secure
	}
	s.conn, s.ended = conn, nil
	if network == "tcp" {
		ended := make(chan struct{})
		s.ended = ended
		go func() { // a server of syslog says nothing: what can be read is the end
			defer close(ended)
			_, _ = io.Copy(io.Discard, conn)
		}()
	}
	return nil
}

func (s *syslog) close() error {
	if s.conn == nil {
		return nil
	}
	err := s.conn.Close()
	if s.ended != nil {
		<-s.ended
	}
	s.conn, s.ended = nil, nil
	return err
}
