package metrics

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestBeyondLoopbackNothingIsServedWithoutTLSAndAProof(t *testing.T) {
	for _, c := range []struct {
		listen Listen
		want   string // of the error; "" for none
	}{
		{Listen{}, ""},
		{Listen{Address: "127.0.0.1:9946"}, ""},
		{Listen{Address: "127.8.0.1:9946", TokenFile: "t"}, ""},
		{Listen{Address: "[::1]:9946"}, ""},
		{Listen{Address: "[::ffff:127.0.0.1]:9946"}, ""},
		{Listen{Address: "/run/heddle/metrics.sock"}, ""},
		{Listen{Address: "0.0.0.0:9946", Cert: "c", Key: "k", TokenFile: "t"}, ""},
		{Listen{Address: "[::]:9946", Cert: "c", Key: "k", ClientCA: "ca"}, ""},
		{Listen{Address: "0.0.0.0:9946"}, "other machines"},
		{Listen{Address: "192.0.2.1:9946", TokenFile: "t"}, "certificate"},
		{Listen{Address: "192.0.2.1:9946", Cert: "c", Key: "k"}, "who may ask"},
		{Listen{Address: "[::]:9946"}, "other machines"},
		{Listen{Address: ":9946"}, "IP address"},
		{Listen{Address: "localhost:9946"}, "IP address"},
		{Listen{Address: "127.0.0.1"}, "IP address"},
		{Listen{Address: "127.0.0.1:9946", Cert: "c"}, "belong together"},
		{Listen{Address: "127.0.0.1:9946", ClientCA: "ca"}, "need TLS"},
		{Listen{Address: "/run/x.sock", Cert: "c", Key: "k"}, "leave the certificates out"},
		{Listen{Cert: "c", Key: "k"}, "no address"},
	} {
		err := c.listen.Check()
		if c.want == "" && err != nil || c.want != "" &&
			(!errors.Is(err, ErrListen) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.listen, err, c.want)
		}
	}
}

// serve serves the metrics of an agent without ports on l, and returns the address.
func serve(t *testing.T, l Listen) string {
	t.Helper()
	open, err := l.Open()
	if err != nil {
		t.Fatal(err)
	}
	r, _ := registry(t, &hostOf{})
	log := slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, open, l.Guard(Handler(r, log)), log) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return open.Addr().String()
}

// get sends a request and returns the status, 0 for no answer.
func get(t *testing.T, c *http.Client, url, token string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestMetricsAreServedOnLoopbackAndOnASocket(t *testing.T) {
	at := serve(t, Listen{Address: "127.0.0.1:0"})
	c := &http.Client{Timeout: 10 * time.Second}
	if status, body := get(t, c, "http://"+at+"/metrics", ""); status != http.StatusOK ||
		!strings.Contains(body, "heddle_agent_info{") || !strings.Contains(body, "process_resident_memory_bytes") {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := get(t, c, "http://"+at+"/", ""); status != http.StatusOK {
		t.Errorf("%d", status)
	}
	if status, _ := get(t, c, "http://"+at+"/debug/pprof/", ""); status != http.StatusNotFound {
		t.Errorf("%d", status)
	}
	path := filepath.Join(t.TempDir(), "m.sock")
	serve(t, Listen{Address: path})
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", fi, err)
	}
	c.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _,
		_ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	if status, _ := get(t, c, "http://agent/metrics", ""); status != http.StatusOK {
		t.Errorf("%d", status)
	}
	if _, err := (Listen{Address: path}).Open(); !errors.Is(err, ErrListen) {
		t.Errorf("a socket that is in use was taken over: %v", err)
	}
	file := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (Listen{Address: file}).Open(); !errors.Is(err, ErrListen) {
		t.Errorf("a file was replaced: %v", err)
	}
}

// authority makes certificates.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.key, a.cert = a.make("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign})
	return a
}

// make makes a certificate and writes NAME.crt and NAME.key.
func (a *authority) make(name string, c *x509.Certificate) (*ecdsa.PrivateKey, *x509.Certificate) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name + ".crt": {Type: "CERTIFICATE", Bytes: der}, name +
		".key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(a.path(file), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return key, made
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) client(cert string) *http.Client {
	a.t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	config := &tls.Config{RootCAs: pool}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(a.path(cert+".crt"), a.path(cert+".key"))
		if err != nil {
			a.t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: config,
		DisableKeepAlives: true}}
}

func TestWithTLSOnlyThoseWithAProofAreAnswered(t *testing.T) {
	a := newAuthority(t)
	a.make("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	a.make("prometheus", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	stranger := newAuthority(t)
	stranger.make("prometheus", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	token := a.path("token")
	if err := os.WriteFile(token, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	base := Listen{Address: "127.0.0.1:0", Cert: a.path("server.crt"), Key: a.path("server.key")}
	byCert, byToken := base, base
	byCert.ClientCA, byToken.TokenFile = a.path("ca.crt"), token
	url := "https://" + serve(t, byCert) + "/metrics"
	if status, why := get(t, a.client("prometheus"), url, ""); status != http.StatusOK {
		t.Errorf("with a certificate: %d %s", status, why)
	}
	if status, _ := get(t, a.client(""), url, ""); status != 0 {
		t.Errorf("without a certificate: %d", status)
	}
	other := a.client("")
	pair, err := tls.LoadX509KeyPair(stranger.path("prometheus.crt"), stranger.path("prometheus.key"))
	if err != nil {
		t.Fatal(err)
	}
	other.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{pair}
	if status, _ := get(t, other, url, ""); status != 0 {
		t.Errorf("with a stranger's certificate: %d", status)
	}
	url = "https://" + serve(t, byToken) + "/metrics"
	for word, want := range map[string]int{"0123456789abcdef": http.StatusOK,
		"0123456789abcdeg": http.StatusUnauthorized, "": http.StatusUnauthorized} {
		if status, _ := get(t, a.client(""), url, word); status != want {
			t.Errorf("token %q: %d, want %d", word, status, want)
		}
	}
	if err := os.WriteFile(token, []byte("another-token-of-today"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _ := get(t, a.client(""), url, "another-token-of-today"); status != http.StatusOK {
		t.Errorf("the new token: %d", status)
	}
	a.refusesBadFiles(byToken)
}

// refusesBadFiles tries files that would serve nobody, or everybody.
func (a *authority) refusesBadFiles(good Listen) {
	for what, spoil := range map[string]func(*Listen){
		"a token for everybody to read": func(l *Listen) {
			l.TokenFile = a.file("open", strings.Repeat("x", 20), 0o644)
		},
		"a short token":      func(l *Listen) { l.TokenFile = a.file("short", "hunter2", 0o600) },
		"a missing token":    func(l *Listen) { l.TokenFile = a.path("missing") },
		"another's key":      func(l *Listen) { l.Key = a.path("ca.key") },
		"no certificates":    func(l *Listen) { l.ClientCA = a.file("empty", "", 0o600) },
		"a missing key file": func(l *Listen) { l.Key = a.path("missing") },
	} {
		l := good
		spoil(&l)
		open, err := l.Open()
		if err == nil {
			open.Close()
		}
		if !errors.Is(err, ErrListen) {
			a.t.Errorf("%s: %v", what, err)
		}
	}
}

func (a *authority) file(name, content string, mode os.FileMode) string {
	a.t.Helper()
	if err := os.WriteFile(a.path(name), []byte(content), mode); err != nil {
		a.t.Fatal(err)
	}
	return a.path(name)
}
