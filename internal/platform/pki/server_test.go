package pki

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// The configurations do in Go's HTTP server and client what they do by themselves: HTTP/2, hosts by their certificate,
// and people without one, whose programs compare addresses.
func TestServer_InHTTP2(t *testing.T) {
	c := newCluster(t, time.Now())
	key, r := c.request()
	i, err := c.IssueController(r, Subject{ID: "c1", Display: "c1", Addresses: []string{"127.0.0.1"}}, time.Now())
	c.must(err)
	srv := c.server(party{key, i.Certificate}, time.Now())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	c.must(err)
	server := &http.Server{TLSConfig: srv.TLS(), Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			if p, err := srv.Peer(r.TLS); err == nil {
				fmt.Fprint(w, p.Name.ID, " ", r.Proto)
			} else {
				fmt.Fprint(w, "nobody ", r.Proto)
			}
		})}
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(l, "", "") }()
	t.Cleanup(func() {
		server.Close()
		if err := <-served; err != http.ErrServerClosed {
			t.Error(err)
		}
	})
	roots := x509.NewCertPool()
	roots.AddCert(c.Trust().Roots[0])
	for _, row := range []struct {
		what   string
		client *tls.Config
		want   string
	}{
		{"a host", c.client(c.host("h1", time.Now()), time.Now()).TLS(), "h1 HTTP/2.0"},
		{"a tool of Heddle's", c.client(party{}, time.Now()).TLS(), "nobody HTTP/2.0"},
		{"any other program that has the root", &tls.Config{RootCAs: roots}, "nobody HTTP/2.0"},
	} {
		t.Run(row.what, func(t *testing.T) {
			tr := &http.Transport{TLSClientConfig: row.client, ForceAttemptHTTP2: true}
			defer tr.CloseIdleConnections()
			res, err := (&http.Client{Transport: tr}).Get("https://" + l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if got, err := io.ReadAll(res.Body); err != nil || string(got) != row.want {
				t.Errorf("%s %v", got, err)
			}
		})
	}
}
