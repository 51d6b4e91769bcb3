package controller

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"

	"heddle/internal/host/ownfile"
	"heddle/internal/platform/store"
)

// Outside is an existing etcd cluster.
type Outside struct {
	// Endpoints are https://HOST:PORT; http:// on the loopback alone.
	Endpoints []string
	// CA is the file of the authorities that its certificates are checked by; "" for the machine's.
	CA string
	// Cert and Key are the files of this controller's certificate there.
	Cert, Key string
	// User and PasswordFile are for a cluster that asks for them.
	User, PasswordFile string
	// Prefix is before every key, so that several Heddle clusters can share one etcd.
	Prefix string
}

// options are those of the store.
func (e *Outside) options() (store.Options, error) {
	o := store.Options{Endpoints: e.Endpoints, Prefix: e.Prefix, Username: e.User}
	secure := false
	for _, text := range e.Endpoints {
		u, err := url.Parse(text)
		switch {
		case err != nil:
			return o, fmt.Errorf("--etcd-endpoints: %w", err)
		case u.Scheme == "https":
			secure = true
		case u.Scheme != "http" || !loopback(u.Hostname()):
			return o, fmt.Errorf("--etcd-endpoints %s: give https://HOST:PORT; without TLS etcd is reached on the "+
				"loopback only", text)
		}
	}
	if (e.User == "") != (e.PasswordFile == "") {
		return o, errors.New("--etcd-user and --etcd-password-file belong together")
	}
	if e.PasswordFile != "" {
		text, err := readPassword(e.PasswordFile)
		if err != nil {
			return o, err
		}
		o.Password = text
	}
	if !secure {
		if e.CA != "" || e.Cert != "" || e.Key != "" {
			return o, errors.New("--etcd-ca, --etcd-cert and --etcd-key are for https:// endpoints")
		}
		return o, nil
	}
	var err error
	o.TLS, err = e.tls()
	return o, err
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// longestPassword is how long a password is at most, in bytes.
const longestPassword = 4096

// readPassword reads a file with one line that others may not read.
func readPassword(path string) (string, error) {
	f, err := ownfile.Open(path, os.O_RDONLY)
	if err != nil {
		return "", fmt.Errorf("--etcd-password-file: %w", err)
	}
	defer f.Close()
	fi, err := f.Stat() // of what is read, also where another file takes its place
	if err != nil {
		return "", fmt.Errorf("--etcd-password-file: %w", err)
	}
	if fi.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("--etcd-password-file %s: others may read it (its mode is %04o): chmod 600 %s", path,
			fi.Mode().Perm(), path)
	}
	b, err := io.ReadAll(io.LimitReader(f, longestPassword+1))
	if err != nil {
		return "", fmt.Errorf("--etcd-password-file: %w", err)
	}
	if len(b) > longestPassword {
		return "", fmt.Errorf("--etcd-password-file %s: it has more than %d bytes", path, longestPassword)
	}
	text := strings.TrimRight(string(b), "\r\n")
	if text == "" || strings.ContainsAny(text, "\r\n") {
		return "", fmt.Errorf("--etcd-password-file %s: it has one line, the password", path)
	}
	return text, nil
}

// tls reads the files. The certificate is read again for each connection, so that it can be renewed.
func (e *Outside) tls() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if e.CA != "" {
		text, err := os.ReadFile(e.CA)
		if err != nil {
			return nil, fmt.Errorf("--etcd-ca: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--etcd-ca %s: it has no certificate in PEM form", e.CA)
		}
	}
	if (e.Cert == "") != (e.Key == "") {
		return nil, errors.New("--etcd-cert and --etcd-key belong together")
	}
	if e.Cert == "" {
		return conf, nil
	}
	read := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(e.Cert, e.Key)
		if err != nil {
			return nil, fmt.Errorf("--etcd-cert and --etcd-key: %w", err)
		}
		return &pair, nil
	}
	if _, err := read(); err != nil { // said at once
		return nil, err
	}
	conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return read() }
	return conf, nil
}
