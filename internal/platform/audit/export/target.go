package export

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
)

// Target is where the log goes.
type Target struct {
	// Kind is stdout, file, udp, tcp, tls or https.
	Kind string
	// Address is the file's path, or HOST:PORT.
	Address string
	// URL is that of an HTTPS collector, without what is for the sender alone.
	URL string
	// CA is a file with the authorities of the other side; "" for the machine's.
	CA string
	// TokenFile is a file with the bearer token for an HTTPS collector; "" for none.
	TokenFile string
	// Cert and Key are files by which a syslog server over TLS, or a collector, knows the sender; "" for none.
	Cert, Key string
}

// ports are the standard ones.
func ports() map[string]string { return map[string]string{"udp": "514", "tcp": "601", "tls": "6514"} }

// usage is what can be given.
const usage = "give stdout, file:/PATH, syslog+udp://HOST[:PORT], syslog+tcp://HOST[:PORT], " +
	"syslog+tls://HOST[:PORT][?ca=FILE&cert=FILE&key=FILE] or https://HOST/PATH[?ca=FILE&token-file=FILE]"

// Parse reads a target as a flag has it.
func Parse(text string) (*Target, error) {
	if text == "stdout" {
		return &Target{Kind: "stdout"}, nil
	}
	if path, ok := strings.CutPrefix(text, "file:"); ok {
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("%q: a file is named by its whole path: file:/PATH", text)
		}
		return &Target{Kind: "file", Address: filepath.Clean(path)}, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		return nil, fmt.Errorf("%q: %s", text, usage)
	}
	t := &Target{}
	q := u.Query()
	take := func(name string) string {
		v := q.Get(name)
		q.Del(name)
		return v
	}
	t.CA, t.Cert, t.Key = take("ca"), take("cert"), take("key")
	switch kind, syslog := strings.CutPrefix(u.Scheme, "syslog+"); {
	case u.Scheme == "https":
		t.Kind, t.TokenFile = "https", take("token-file")
		u.RawQuery = q.Encode() // what is left is the collector's
		t.URL = u.String()
	case syslog && ports()[kind] != "" && strings.Trim(u.Path, "/") == "" && len(q) == 0:
		t.Kind, t.Address = kind, u.Host
		if u.Port() == "" {
			t.Address = net.JoinHostPort(u.Hostname(), ports()[kind])
		}
	default:
		return nil, fmt.Errorf("%q: %s", text, usage)
	}
	return t, t.check()
}

func (t *Target) check() error {
	if (t.Kind == "udp" || t.Kind == "tcp") && t.CA+t.Cert+t.Key != "" {
		return errors.New("certificates are for syslog+tls and https")
	}
	if (t.Cert == "") != (t.Key == "") {
		return errors.New("a certificate needs its key: cert=FILE&key=FILE")
	}
	return nil
}

// String names the target for people, without secrets.
func (t *Target) String() string {
	switch t.Kind {
	case "stdout":
		return "stdout"
	case "file":
		return "file:" + t.Address
	case "https":
		return t.URL
	}
	return "syslog+" + t.Kind + "://" + t.Address
}
