// Package rpc is how a controller answers: agents over mutual TLS, people and tools over its own socket.
package rpc

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/controller/pki"
	"heddle/internal/controller/store"
	"heddle/internal/identity"
)

// maxBody bounds what a caller may send at once, in bytes: a report of a host with the most ports, or a definition.
const maxBody = 24 << 20

// Store is what a server needs of the store.
type Store interface {
	Get(store.Key) (store.Object, bool)
	List(store.Kind) []store.Object
	Write(context.Context, []store.Change) (int64, error)
	Watch(ctx context.Context, from int64) <-chan store.Batch
	Sync(context.Context) error
}

// Options are what a server needs.
type Options struct {
	Store Store
	// Authority issues certificates.
	Authority *pki.Authority
	// TLS says who is at the other end.
	TLS pki.Server
	// Epoch of the data.
	Epoch int64
	Log   *slog.Logger
	// HelloTime bounds how long a host may take to say who it is; 10 s if it is zero.
	HelloTime time.Duration
}

// Server answers agents, people and tools.
type Server struct {
	Options
	fleet *fleet
	gate  *pki.Gate
}

// New makes a server. Run runs it.
func New(o Options) (*Server, error) {
	if o.HelloTime == 0 {
		o.HelloTime = helloTime
	}
	s := &Server{o, newFleet(o.Log, o.Epoch), pki.NewGate(&pki.Revocations{})}
	s.TLS.Revoked = s.gate.Check
	return s, s.readRevocations()
}

// controllerKind is the kind of the object that says where a controller is.
const controllerKind store.Kind = "controller"

// controllerDoc is what the store keeps of a controller.
type controllerDoc struct {
	Address string `json:"address"`
}

// Announce writes where agents find the controller of that id.
func (s *Server) Announce(ctx context.Context, id, address string) error {
	doc, err := json.Marshal(controllerDoc{address})
	if err != nil {
		return err
	}
	_, err = s.Store.Write(ctx, []store.Change{{Key: store.Key{Kind: controllerKind, Name: id}, Doc: doc,
		IfVersion: store.Any}})
	return storeError(err)
}

// controllers are the addresses of all controllers, HOST:PORT.
func (s *Server) controllers() (list []string) {
	for _, o := range s.Store.List(controllerKind) {
		var doc controllerDoc
		if json.Unmarshal(o.Doc, &doc) == nil && doc.Address != "" {
			list = append(list, doc.Address)
		}
	}
	return list
}

// Run follows the store until ctx ends.
func (s *Server) Run(ctx context.Context) {
	for b := range s.Store.Watch(ctx, 0) {
		s.takeRevocations(b) // first, as it says why
		s.fleet.take(b)
	}
}

// Hosts answers agents: the listener is given connections of TLS.
func (s *Server) Hosts() http.Handler {
	rpc := connect.NewServer()
	controllerv1connect.RegisterHostServiceHandler(rpc, s)
	mux := http.NewServeMux()
	connecthttp.Mount(mux, rpc, connecthttp.WithReadMaxBytes(maxBody), connecthttp.WithCompressors())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(w, r.WithContext(s.withCaller(r)))
	})
}

// People answers on the controller's own socket, whose mode says who may call.
func (s *Server) People() http.Handler {
	rpc := connect.NewServer()
	controllerv1connect.RegisterFleetServiceHandler(rpc, people{s})
	mux := http.NewServeMux()
	connecthttp.Mount(mux, rpc, connecthttp.WithReadMaxBytes(maxBody), connecthttp.WithCompressors())
	mux.Handle("POST "+lookPath, s.looks())
	return mux
}

// people is the half of the server that people call.
type people struct{ *Server }

type callerKey struct{}

// caller is who calls.
type caller struct {
	peer    *identity.Peer // nil without a certificate
	err     error          // why the certificate shown does not count
	address string
}

func (s *Server) withCaller(r *http.Request) context.Context {
	c := caller{address: r.RemoteAddr}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		c.peer, c.err = s.TLS.Renewing(r.TLS)
	}
	return context.WithValue(r.Context(), callerKey{}, c)
}

// peerOf is the host that calls. One with an expired certificate may renew it and nothing else (RenewOnly).
func peerOf(ctx context.Context) (*identity.Peer, error) {
	c, _ := ctx.Value(callerKey{}).(caller)
	switch {
	case c.err != nil:
		return nil, connect.NewError(connect.CodePermissionDenied, c.err.Error())
	case c.peer == nil:
		return nil, connect.NewError(connect.CodeUnauthenticated,
			"a host shows its certificate: join the cluster first "+
				"(heddle host join)")
	case c.peer.Name.Kind != identity.Host:
		return nil, connect.NewError(connect.CodePermissionDenied, "this is for hosts")
	}
	return c.peer, nil
}

func addressOf(ctx context.Context) string {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c.address
}

// Listener makes TLS of a listener for hosts. Who has not proved who they are is bounded there.
func (s *Server) Listener(l net.Listener) net.Listener { return newDoor(l, s.TLS.TLS(), s.Log) }

// HTTP is the server of one handler. Streams last, so that nothing but a request's beginning is bounded in time.
func (s *Server) HTTP(h http.Handler) *http.Server {
	protocols := &http.Protocols{}
	protocols.SetHTTP2(true)
	protocols.SetHTTP1(true)
	return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 5 * time.Minute,
		Protocols: protocols, ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second}}
}
