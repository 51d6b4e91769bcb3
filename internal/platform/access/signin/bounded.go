package signin

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/time/rate"

	"heddle/internal/identity"
)

// Bounds of what a provider is asked and may answer.
const (
	// longestAnswer is how long a document of the provider is at most, in bytes: discovery and keys take a few KiB.
	longestAnswer = 1 << 20
	// answerTime is how long the provider may take for one.
	answerTime = 10 * time.Second
	// askEvery is how often the provider is asked on average, askBurst how often at once: who sends tokens that name
	// keys that do not exist must not make the controller flood it.
	askEvery = 10 * time.Second
	askBurst = 6
)

// errTooOften says that the provider was asked often enough.
var errTooOften = errors.New("the provider was asked for its keys a moment ago: try again in 10 s")

// bounded asks the provider within the bounds.
type bounded struct {
	next  http.RoundTripper
	often *rate.Limiter
}

// RoundTrip asks.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, fmt.Errorf("%s: a provider is asked by https alone", r.URL.Redacted())
	}
	if !b.often.Allow() {
		return nil, errTooOften
	}
	resp, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = &short{resp.Body, longestAnswer}
	return resp, nil
}

// short is a body that fails where it is too long.
type short struct {
	io.ReadCloser
	left int
}

var errTooLong = fmt.Errorf("the provider's answer is longer than %d bytes", longestAnswer)

// Read reads.
func (s *short) Read(b []byte) (int, error) {
	n, err := s.ReadCloser.Read(b[:min(len(b), s.left+1)])
	if s.left -= n; s.left < 0 {
		return 0, errTooLong
	}
	return n, err
}

// newClient makes what asks the provider. ca is a file with its authorities; "" for those of the machine. published are
// their certificates in PEM form.
func newClient(ca string) (c *http.Client, published string, err error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		text, err := os.ReadFile(ca)
		if err != nil {
			return nil, "", fmt.Errorf("--oidc-ca: %w", err)
		}
		list, err := authorities(text)
		if err != nil {
			return nil, "", fmt.Errorf("--oidc-ca: %s %w", ca, err)
		}
		conf.RootCAs = x509.NewCertPool()
		for _, c := range list {
			conf.RootCAs.AddCert(c)
		}
		published = string(identity.PEMOf(list...))
	}
	transport := &http.Transport{TLSClientConfig: conf, Proxy: http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: answerTime}).DialContext,
		TLSHandshakeTimeout: answerTime, MaxResponseHeaderBytes: 64 << 10, MaxIdleConns: 2, MaxConnsPerHost: 2,
		IdleConnTimeout: time.Minute}
	return &http.Client{Timeout: answerTime,
		Transport: bounded{transport, rate.NewLimiter(rate.Every(askEvery), askBurst)}}, published, nil
}

// authorities are the certificates of a file, which everybody is told who wants to sign in. A file that has something
// else, such as a key, is refused: it is not meant to be read by others.
func authorities(text []byte) (list []*x509.Certificate, err error) {
	for rest := text; ; {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			break
		}
		if b.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("has a %.40q, and is told to everybody who wants to sign in: give a file with the "+
				"certificates of the provider's authorities alone", b.Type)
		}
		c, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, fmt.Errorf("has a certificate that can't be read: %w", err)
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, errors.New("has no certificate in PEM form")
	}
	return list, nil
}
