package rpc

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/api"
	"heddle/internal/controller/backup/service"
	"heddle/internal/controller/capability"
	"heddle/internal/controller/definition"
	"heddle/internal/controller/flaps"
	"heddle/internal/controller/history"
	"heddle/internal/controller/match"
	"heddle/internal/controller/netbench"
	"heddle/internal/controller/part"
	"heddle/internal/controller/past"
	"heddle/internal/controller/probes"
	"heddle/internal/controller/rollout/driverlease"
	"heddle/internal/controller/segments"
	"heddle/internal/identity"
	"heddle/internal/platform/access"
	"heddle/internal/platform/access/granting"
	"heddle/internal/platform/access/signin"
	"heddle/internal/platform/access/tokens"
	"heddle/internal/platform/audit"
	auditing "heddle/internal/platform/audit/reading"
	"heddle/internal/platform/batch"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/pki/issuing"
	"heddle/internal/platform/serve"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
)

// maxBody bounds what a caller may send at once, in bytes: a report of a host with the most ports.
const maxBody = 24 << 20

// maxAsked bounds what a person may send at once, in bytes: the largest definition and the other fields.
const maxAsked = 40 << 20

// maxHeader bounds the header of a request, in bytes: whoever reaches a port may send one, and many at a time.
const maxHeader = 16 << 10

// Store is what a server needs of the store.
type Store interface {
	Get(store.Key) (store.Object, bool)
	List(store.Kind) []store.Object
	Write(context.Context, []store.Change) (int64, error)
	Watch(ctx context.Context, from int64) <-chan store.Batch
	Sync(context.Context) error
	Confirm(context.Context) error
	// Revision is that of what Get and List read.
	Revision() int64
	// Stale says why reads may be old; nil when they are current.
	Stale() error
	Claim(context.Context, store.ClaimRequest) (store.Port, error)
	Release(context.Context, store.ReleaseRequest) error
	Resize(ctx context.Context, group string, ports int, guard *store.Change) error
	RemovePorts(ctx context.Context, group string, force bool, guard *store.Change) error
	ImportPorts(ctx context.Context, group string, ports []store.Port, mark *store.Change) error
}

// Members are what a server needs of etcd besides.
type Members interface {
	Status(context.Context) (store.Status, error)
	AddMember(ctx context.Context, name string, urls []string) (id uint64, members []string, err error)
	RemoveMember(ctx context.Context, id uint64) error
	Snapshot(ctx context.Context, to io.Writer) (size int64, err error)
}

// Options are what a server needs.
type Options struct {
	Store Store
	// Authority issues certificates.
	Authority *pki.Current
	// TLS says who is at the other end.
	TLS pki.Server
	// Epoch of the data.
	Epoch int64
	Log   *slog.Logger
	// Steady is a clock that nobody sets, since some instant; nil for one since now.
	Steady func() time.Duration
	// Audit is the record of what people and tools do.
	Audit *audit.Log
	// SignIn is the provider by which people sign in; nil for none.
	SignIn *signin.Provider
	// Self is this controller, for who asks how it is.
	Self Self
	// HelloTime bounds how long a host may take to say who it is; 10 s if it is zero.
	HelloTime time.Duration
	// ReaderTime bounds how long a host or another controller may take to read a part of what it is sent; 30 s if it is
	// zero.
	ReaderTime time.Duration
	// Past is the definition's history, KeepHistory how much of it is kept; none is by the zero value.
	Past        definition.Past
	KeepHistory history.Keep
	// Members are the controllers' own; nil where nobody asks.
	Members Members
	// Secret opens the authority's key: a controller that joins gets it.
	Secret pki.Secret
	// JoinCluster makes this controller part of another cluster. May be nil.
	JoinCluster func(context.Context, *controllerv1.JoinClusterRequest) (*controllerv1.JoinClusterResponse, error)
	// QuorumTime is how long this controller may be cut off from the majority before the hosts are sent away; 3 s if it
	// is zero.
	QuorumTime time.Duration
	// SpreadTime is how often the hosts are spread over the controllers; 15 s if it is zero.
	SpreadTime time.Duration
	// ShareTime is how often controllers tell one another of adapters in conflict; 5 s if it is zero.
	ShareTime time.Duration
	// PortLease is for how long a host that has lost its controllers holds its static ports, so that no other host gets
	// them without force; a minute if it is zero.
	PortLease time.Duration
	// Capabilities are those that the program has besides the core.
	Capabilities capability.List
	// LeaseTime is how long another controller waits before it drives the rollouts of one that has ended; 6 s if it is
	// zero.
	LeaseTime time.Duration
}

// Server answers agents, people and tools.
type Server struct {
	Options
	fleet *fleet
	gate  *pki.Gate
	// revoked says whose certificates count no more, issuing whether some may be made.
	revoked *revocations
	issuing issuing.Guard
	*peers.Roster
	quorum *quorum
	guard  *access.Guard
	// granted is who may do what.
	granted *granting.Keeper
	// tokens are those of people and tools, auditing reads what they did.
	tokens   tokens.Service
	auditing auditing.Service
	// refused are the connections that could ask for nothing.
	refused *serve.Refusals
	// allowance bounds what hosts may send at a time.
	allowance *allowance
	// filling gives hosts the addresses that they lack.
	filling *batch.Call
	// sight is who drives rollouts.
	sight *driverlease.Sight
	// backups answers people about backups.
	backups *service.Service
	// parsing is held while a large definition is read, which takes memory: 820 MB for 22 MB of text.
	parsing *sync.Mutex
	// earlier are the definitions that were read of the history, reading are the turns of who asks for one.
	earlier *past.Kept
	reading *access.Turns
	// match brings hosts together between which ports move.
	match *match.Board
	// segments says who is where on overlay segments.
	segments *segments.Hub
	// probes says what the probes between hosts find.
	probes *probes.Hub
	// network answers people about the physical network.
	network *netbench.Service
	// Loaded is closed once Run has taken in the state of the store. Who is answered before would be told of a cluster
	// without hosts, ports and tokens.
	Loaded chan struct{}
}

// New makes a server. Run runs it.
func New(o Options) (*Server, error) {
	if began := time.Now(); o.Steady == nil {
		o.Steady = func() time.Duration { return time.Since(began) }
	}
	if o.HelloTime == 0 {
		o.HelloTime = helloTime
	}
	if o.ReaderTime == 0 {
		o.ReaderTime = readerTime
	}
	if o.QuorumTime == 0 {
		o.QuorumTime = quorumTime
	}
	if o.SpreadTime == 0 {
		o.SpreadTime = spreadTime
	}
	if o.ShareTime == 0 {
		o.ShareTime = shareTime
	}
	if o.PortLease == 0 {
		o.PortLease = portLease
	}
	if o.LeaseTime == 0 {
		o.LeaseTime = driverlease.Usual
	}
	s := &Server{Options: o, fleet: newFleet(o.Log, o.Epoch), gate: pki.NewGate(&pki.Revocations{}),
		Roster: peers.New(o.Store), quorum: &quorum{},
		refused: serve.NewRefusals(o.Log), allowance: &allowance{}, filling: &batch.Call{},
		earlier: &past.Kept{Most: past.MostKept}, reading: &access.Turns{},
		parsing: &sync.Mutex{}, sight: &driverlease.Sight{},
		granted: granting.NewKeeper(o.Log), Loaded: make(chan struct{})}
	s.TLS.Revoked = s.gate.Check
	s.revoked = &revocations{o.Store, s.gate, o.Log, o.TLS.Now}
	s.issuing = issuing.Guard{Roster: s.Roster, Log: o.Log, Clocks: issuing.Clocks{Authority: o.Authority,
		Now: o.TLS.Now, Steady: o.Steady,
		Connected: func(but string) []*issuing.Clock { return clocksOf(s.fleet, but) }}}
	s.tokens, s.auditing = tokensOf(s), auditing.Service{Audit: o.Audit, Roster: s.Roster, Log: o.Log}
	s.guard = access.New(access.Options{Token: s.tokens.Record, Book: s.granted.Book, Audit: o.Audit, Log: o.Log,
		Rules: o.Capabilities.Rules(), Unconfirmed: s.revoked.unconfirmedToken, Now: o.TLS.Now})
	s.ReachBy(identity.Client{Own: o.TLS.Own, Clock: identity.Clock{Now: o.TLS.Now}, Revoked: s.gate.Check})
	s.segments = segments.New(segments.Options{Log: o.Log, Allowed: segmenting{s.fleet}.allowed, Now: time.Now})
	s.probes = probes.New(probes.Options{Log: o.Log, Secret: o.Secret.Content(), Now: time.Now,
		Connected: spanning{s}.connected,
		Absent:    func() map[string]bool { return notHere(s.fleet) },
		Others:    func() []string { return idsOf(s.Others()) }})
	s.network, s.backups = networkOf(s), backupsOf(s)
	again := flaps.NewHub()
	known := func(adapters []part.Adapter, hosts []string) match.Known { return matching(s.fleet, adapters, hosts) }
	s.match = match.New(match.Options{Log: o.Log, Known: known, Linger: lingers * o.ShareTime, Flaps: again,
		Now: time.Now})
	s.fleet.adapters.Linger = lingers * o.ShareTime
	s.fleet.have(capabilitiesOf(s), s.fleet.adapters, s.fleet.together, s.match, again, s.segments, s.probes)
	return s, s.revoked.read()
}

// clocksOf are the clocks of the hosts that are connected, but that of the host with an id.
func clocksOf(f *fleet, but string) (list []*issuing.Clock) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.hosts {
		if h.conn != nil && h.id != but {
			list = append(list, h.conn.clock)
		}
	}
	return list
}

// networkOf is what answers people about the physical network.
func networkOf(s *Server) *netbench.Service {
	return netbench.New(netbench.Options{Log: s.Log, Probes: s.probes,
		Hosts: func(ctx context.Context) ([]*controllerv1.Host, error) {
			all, err := people{s}.ListHosts(ctx, &controllerv1.ListHostsRequest{})
			return all.GetHosts(), err
		},
		Agent: agentOf(s)})
}

// agentOf makes one call at a host's agent, wherever the host is connected.
func agentOf(s *Server) func(context.Context, string, func(context.Context, *connect.Client) error) error {
	return func(ctx context.Context, host string, do func(context.Context, *connect.Client) error) error {
		return callAgent(ctx, s, host, do)
	}
}

// Times of a server.
const (
	quorumTime = 3 * time.Second
	// shareTime is how often controllers tell one another anew of adapters in conflict, and how soon one that did not
	// answer is told everything.
	shareTime = 5 * time.Second
	// lingers is for how many times shareTime counts what another controller said that does not answer any more, and
	// what a host offered that has lost its controller: it may be on its way to another one.
	lingers    = 6
	spreadTime = 15 * time.Second
)

// Run follows the store until ctx ends.
func (s *Server) Run(ctx context.Context) {
	var beside sync.WaitGroup
	beside.Go(func() { s.quorum.watch(ctx, s) })
	beside.Go(func() { spread(ctx, s) })
	beside.Go(func() { s.fleet.adapters.Share(ctx, s.Roster, s.ShareTime) })
	beside.Go(func() { s.everywhere().remember(ctx) })
	beside.Go(func() { s.fleet.adapters.Clear(ctx, s.ShareTime, whoStopped(s)) })
	beside.Go(func() { oldListOf(s).follow(ctx, s.ShareTime) })
	beside.Go(func() { s.match.Run(ctx) })
	beside.Go(func() { s.match.Share(ctx, s.Roster, s.ShareTime) })
	beside.Go(func() { leaderOf(s).Run(ctx) })
	beside.Go(func() { s.SignIn.Watch(ctx) })
	beside.Go(func() { s.segments.FollowOthers(ctx, s.Roster) })
	beside.Go(func() {
		s.probes.AskOthers(ctx, s.Roster, func(id string) bool { return segmenting{s.fleet}.nameOf(id) != "" })
	})
	beside.Go(func() { s.probes.Run(ctx) })
	s.fleet.capabilities.run(ctx, beside.Go)
	var defined *slice.Set // as of the last batch
	var at int64
	loaded := sync.OnceFunc(func() { close(s.Loaded) })
	for b := range s.Store.Watch(ctx, 0) {
		s.revoked.take(b) // first, as it says why
		s.takeTokens(b)
		s.fleet.take(b)
		if objects, revision := (contents{s.fleet}).defined(); objects != defined || revision != at {
			defined, at = objects, revision
			s.segments.Redefined()
		}
		loaded()
	}
	beside.Wait()
	s.End()
}

// Hosts answers agents: the listener is given connections of TLS.
func (s *Server) Hosts() http.Handler {
	rpc := connect.NewServer()
	controllerv1connect.RegisterHostServiceHandler(rpc, arriving{spanning{s}})
	controllerv1connect.RegisterControllerServiceHandler(rpc, others{s})
	mux := http.NewServeMux()
	connecthttp.Mount(mux, rpc, connecthttp.WithReadMaxBytes(maxBody), connecthttp.WithCompressors(),
		api.StrictCodecs())
	mux.Handle("POST "+lookPath, newLooks(s, true))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := s.withCaller(r)
		leave, err := s.allowance.bound(ctx, w, r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusTooManyRequests)
			return
		}
		defer leave()
		mux.ServeHTTP(access.Patient(w, s.ReaderTime), r.WithContext(ctx))
	})
}

// others is the half that other controllers call.
type others struct{ *Server }

func (s *Server) withCaller(r *http.Request) context.Context {
	c := caller{address: r.RemoteAddr}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		if c.peer, c.err = s.TLS.Renewing(r.TLS); c.err != nil {
			s.refused.Note(c.address, c.err)
		}
	}
	return context.WithValue(r.Context(), callerKey{}, c)
}

// Listener makes TLS of a listener for hosts. Who has not proved who they are is bounded there.
func (s *Server) Listener(l net.Listener) net.Listener {
	return serve.NewListener(l, s.TLS.TLS(), s.refused, serve.Bounds{})
}

// HTTP is the server of one handler. Streams last, so that nothing but a request's beginning is bounded in time.
func (s *Server) HTTP(h http.Handler) *http.Server {
	protocols := &http.Protocols{}
	protocols.SetHTTP2(true)
	protocols.SetHTTP1(true)
	return &http.Server{Handler: h, ConnContext: serve.WithConnection, ReadHeaderTimeout: 10 * time.Second,
		MaxHeaderBytes: maxHeader, IdleTimeout: 5 * time.Minute, Protocols: protocols,
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second,
			WriteByteTimeout: s.ReaderTime}}
}
