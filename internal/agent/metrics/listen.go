package metrics

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"
)

// Listen says where metrics are served, and to whom.
type Listen struct {
	// Address is "" for no listener, ADDRESS:PORT with an IP address, or the path of a unix socket.
	Address string
	// Cert and Key are PEM files: the server's certificate with its chain, and its key.
	Cert, Key string
	// ClientCA is a PEM file of CA certificates: only callers with a certificate from one of them are answered.
	ClientCA string
	// TokenFile is a file with a token of 16 characters or more that callers must send ("Authorization: Bearer TOKEN").
	TokenFile string
}

// shortestToken is the least length of a token, in characters.
const shortestToken = 16

// ErrListen is wrapped by the errors of a Listen.
var ErrListen = errors.New("metrics")

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrListen, fmt.Sprintf(format, args...))
}

// Check returns what is wrong with the settings, before anything listens: beyond this machine's loopback, TLS and
// authentication of the callers are required.
func (l Listen) Check() error {
	if l.Address == "" {
		if l.Cert+l.Key+l.ClientCA+l.TokenFile != "" {
			return wrong("certificates or a token are given, and no address to listen at: add --metrics ADDRESS:PORT")
		}
		return nil
	}
	if (l.Cert == "") != (l.Key == "") {
		return wrong("a certificate and its key belong together: give both --metrics-cert and --metrics-key")
	}
	if l.ClientCA != "" && l.Cert == "" {
		return wrong("callers' certificates need TLS: give --metrics-cert and --metrics-key, too")
	}
	if l.socket() {
		if l.Cert != "" {
			return wrong("the unix socket %s is for root alone and needs no TLS: leave the certificates out", l.Address)
		}
		return nil
	}
	at, err := netip.ParseAddrPort(l.Address)
	if err != nil {
		return wrong("listen at %q: it is an IP address with a port, such as 127.0.0.1:9946 or [::1]:9946, or the "+
			"path of a unix socket", l.Address)
	}
	if at.Addr().Unmap().IsLoopback() {
		return nil
	}
	if l.Cert == "" {
		return wrong("%s can be reached from other machines: give a certificate (--metrics-cert, --metrics-key), and "+
			"--metrics-client-ca or --metrics-token-file; or listen at 127.0.0.1", l.Address)
	}
	if l.ClientCA == "" && l.TokenFile == "" {
		return wrong("%s can be reached from other machines: say who may ask, by --metrics-client-ca or "+
			"--metrics-token-file", l.Address)
	}
	return nil
}

func (l Listen) socket() bool { return strings.HasPrefix(l.Address, "/") }

// Open listens. It reads the files once, so that faults in them are reported now.
func (l Listen) Open() (net.Listener, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if l.TokenFile != "" {
		if _, err := readToken(l.TokenFile); err != nil {
			return nil, err
		}
	}
	if l.socket() {
		return openSocket(l.Address)
	}
	var config *tls.Config
	if l.Cert != "" {
		var err error
		if config, err = l.tls(); err != nil {
			return nil, err
		}
	}
	open, err := net.Listen("tcp", l.Address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrListen, err)
	}
	if config != nil {
		open = tls.NewListener(open, config)
	}
	return open, nil
}

// openSocket makes a unix socket for root alone. An existing socket was left by a dead agent and is replaced; any other
// file is left alone.
func openSocket(path string) (net.Listener, error) {
	fi, err := os.Lstat(path)
	switch {
	case err == nil && fi.Mode().Type() != fs.ModeSocket:
		return nil, wrong("%s is there, and no socket: give another path", path)
	case err == nil:
		if c, err := net.Dial("unix", path); err == nil {
			c.Close()
			return nil, wrong("another process listens at %s: give another path", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("%w: remove the socket a dead agent left: %w", ErrListen, err)
		}
	}
	old := syscall.Umask(0o177)
	defer syscall.Umask(old)
	open, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrListen, err)
	}
	return open, nil
}

// tls returns a TLS configuration that reads the certificate at every connection, so that a renewed certificate is
// used.
func (l Listen) tls() (*tls.Config, error) {
	if _, err := tls.LoadX509KeyPair(l.Cert, l.Key); err != nil {
		return nil, wrong("certificate %s and key %s: %v", l.Cert, l.Key, err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate,
		error) {
		pair, err := tls.LoadX509KeyPair(l.Cert, l.Key)
		return &pair, err
	}}
	if l.ClientCA == "" {
		return c, nil
	}
	text, err := os.ReadFile(l.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrListen, err)
	}
	c.ClientCAs = x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(text) {
		return nil, wrong("there is no certificate in %s", l.ClientCA)
	}
	c.ClientAuth = tls.RequireAndVerifyClientCert
	return c, nil
}

// readToken reads the token from a file that only its owner and group may read.
func readToken(path string) (string, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrListen, err)
	}
	if fi.Mode().Perm()&0o007 != 0 {
		return "", wrong("everybody may read the token in %s: chmod 0600 it", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrListen, err)
	}
	token := strings.TrimSpace(string(text))
	if len(token) < shortestToken {
		return "", wrong("the token in %s is too short: give it %d characters or more", path, shortestToken)
	}
	return token, nil
}

// Guard passes requests with the right token. The token is read at every request, so that a new one is used.
func (l Listen) Guard(next http.Handler) http.Handler {
	if l.TokenFile == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, err := readToken(l.TokenFile)
		want, got := sha256.Sum256([]byte("Bearer "+token)), sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if err != nil || subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="heddle"`)
			http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Serve answers requests on l until ctx ends; requests in progress are finished.
func Serve(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second,
		IdleTimeout:  2 * time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(log.Handler(),
			slog.LevelDebug)}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		stopped <- srv.Shutdown(grace)
	})
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}
