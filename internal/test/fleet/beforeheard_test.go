package fleet

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// heard stands between commands and what they ask, and remembers which calls they make: SERVICE.CALL as in used.
type heard struct {
	path string

	mu    sync.Mutex
	calls map[string]bool
}

// hears passes what comes to a socket of its own on to another one, until the test ends. The new socket, of that name,
// is in a directory of its own.
func hears(t *testing.T, name, socket string) *heard {
	t.Helper()
	dir, err := os.MkdirTemp("", "heard-") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	h := &heard{path: filepath.Join(dir, name), calls: map[string]bool{}}
	l, err := net.Listen("unix", h.path)
	if err != nil {
		t.Fatal(err)
	}
	through := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	pass := &httputil.ReverseProxy{FlushInterval: -1, Transport: through, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "there", r.In.Host
		h.hear(r.In.URL.Path)
	}, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
		w.WriteHeader(http.StatusBadGateway)
	}}
	server, done := &http.Server{Handler: pass}, make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // until it is closed
	}()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		<-done
		through.CloseIdleConnections()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return h
}

// hear remembers the call of a path that ends with heddle.PACKAGE.v1.SERVICEService/CALL.
func (h *heard) hear(path string) {
	parts := strings.Split(path, "/")
	if len(parts) < 2 {
		return
	}
	service := strings.TrimSuffix(strings.TrimPrefix(parts[len(parts)-2], "heddle."), "Service")
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls[strings.Replace(service, ".v1.", ".", 1)+"."+parts[len(parts)-1]] = true
}

// take gives the calls since the last time.
func (h *heard) take() map[string]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	calls := h.calls
	h.calls = map[string]bool{}
	return calls
}
