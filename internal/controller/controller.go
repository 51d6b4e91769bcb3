package controller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/capability"
	"heddle/internal/controller/history"
	"heddle/internal/controller/inventory"
	"heddle/internal/controller/rpc"
	"heddle/internal/host/ownfile"
	"heddle/internal/platform/access/signin"
	"heddle/internal/platform/audit"
	"heddle/internal/platform/snapshots"
	"heddle/internal/platform/store"
)

// Options are what a controller is started with.
type Options struct {
	// AuditExport are where the audit log is sent as well: see export.Parse.
	AuditExport []string
	// Dir holds all that the controller keeps.
	Dir string
	// Listen is the address for agents: HOST:PORT.
	Listen string
	// Advertise is where agents find this controller: HOST:PORT.
	Advertise string
	// ListenPeers is the address for the other controllers' etcd, AdvertisePeers where they find it: HOST:PORT. "" is
	// the host of Listen and Advertise with the port after theirs; "none" for a controller that stays alone.
	ListenPeers, AdvertisePeers string
	// API is the address for people and tools with a token: HOST:PORT; "" for none.
	API string
	// Metrics is an address on the loopback where metrics are served to anybody on this machine; "" for none.
	Metrics string
	// Socket is where people and tools on this machine call; its mode lets root alone.
	Socket string
	// Name is that of a new cluster, for people; Controller that of this controller.
	Name, Controller string
	// EtcdQuota is how large the database of the etcd in this process may grow, in bytes; 0 = store.DefaultQuota.
	EtcdQuota int64
	// Outside is an existing etcd cluster; without endpoints, etcd runs in this process.
	Outside Outside
	// SignIn is the identity provider by which people sign in.
	SignIn signin.Config
	// PortLease is for how long a host that has lost its controllers holds its static ports.
	PortLease time.Duration
	// History says how much of the definition's history is kept.
	History history.Keep
	// Snapshots says when snapshots are taken.
	Snapshots snapshots.Schedule
	// Version is that of the program.
	Version string
	// Capabilities are those that the program has besides the core.
	Capabilities capability.List
	Log          *slog.Logger
	// Ready is called when the controller answers. May be nil.
	Ready func()
}

// grace is how long requests under way may take when the controller ends.
const grace = 5 * time.Second

// errAnew ends a run of a controller that begins anew at once: who it is has changed.
var errAnew = errors.New("the controller starts anew")

// Run runs a controller until ctx ends.
func Run(ctx context.Context, o Options) error {
	for {
		err := run(ctx, o)
		if !errors.Is(err, errAnew) {
			return err
		}
		o.Log.Info("starting anew", "why", err)
	}
}

func run(ctx context.Context, o Options) (ended error) {
	provider, err := signin.New(o.SignIn, time.Now)
	if err != nil {
		return err
	}
	if err := o.awaitDirectory(ctx); err != nil {
		return err
	}
	self, st, err := begin(ctx, o)
	if err != nil {
		return err
	}
	defer st.Close()
	record, err := audit.Open(filepath.Join(o.Dir, "audit"), audit.DefaultBounds(), time.Now)
	if err != nil {
		return err
	}
	defer func() { ended = errors.Join(ended, record.Close()) }()
	exported, err := exports(ctx, o, self.Controller.Name, record)
	if err != nil {
		return err
	}
	defer exported()
	listen, err := o.listen()
	if err != nil {
		return err
	}
	self.API = listen.advertised
	keeper := &snapshots.Keeper{Schedule: o.Snapshots, Log: o.Log}
	anew := make(chan error, 1)
	server, err := rpc.New(rpc.Options{Store: st, Past: store.PastOf(st), KeepHistory: o.History, Members: st,
		Authority: self.authority, Secret: self.secret,
		Epoch: st.Cluster().Epoch, Log: o.Log, PortLease: o.PortLease, TLS: self.server(), Audit: record,
		Capabilities: o.Capabilities, SignIn: provider,
		Self: rpc.Self{Started: time.Now(), Dir: o.Dir, Store: st.Status, Etcd: store.EtcdOf(st),
			StoreID: st.Cluster().ID, EtcdRoots: self.etcdRoots,
			Snapshots: keeper.State, Writes: newTrial(self.dir).writes},
		JoinCluster: func(ctx context.Context, q *controllerv1.JoinClusterRequest) (*controllerv1.JoinClusterResponse,
			error) {
			joined, err := stage(ctx, o, Join{Controller: q.GetController(), Token: q.GetToken(), Name: q.GetName()})
			if err != nil {
				return nil, err
			}
			select {
			case anew <- fmt.Errorf("%w: it joins cluster %s", errAnew, joined.Cluster):
			default:
			}
			return &controllerv1.JoinClusterResponse{Cluster: joined.Cluster, Name: joined.Name}, nil
		}})
	if err != nil {
		return errors.Join(err, listen.close())
	}
	self.Version, self.Kinds = o.Version, strings.Join(inventory.KindNames(), " ")
	err = store.Patiently(ctx, st, "say where this controller is", func(ctx context.Context) error {
		return server.Announce(ctx, self.Controller)
	})
	switch {
	case errors.Is(err, store.ErrNoSpace): // hosts are served all the same
		o.Log.Warn("this controller's address and version are not written", "err", err)
	case err != nil:
		return errors.Join(err, listen.close())
	}
	return serve(ctx, o, st, server, self, listen, anew, keeper)
}

// serve answers until ctx ends.
func serve(ctx context.Context, o Options, st *store.Store, server *rpc.Server, self *self, at *listeners,
	anew chan error, keeper *snapshots.Keeper) error {
	front := rpc.Front{Server: server}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { server.Run(ctx); return nil })
	select {
	case <-server.Loaded:
	case <-ctx.Done():
		return g.Wait()
	}
	g.Go(func() error { return answer(ctx, server.HTTP(server.Hosts()), server.Listener(at.hosts)) })
	g.Go(func() error { return answer(ctx, server.HTTP(front.People()), at.socket) })
	if at.api != nil {
		g.Go(func() error { return answer(ctx, front.APIServer(), front.APIListener(at.api)) })
	}
	if at.metrics != nil {
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", front.Metrics())
		g.Go(func() error { return answer(ctx, server.HTTP(mux), at.metrics) })
	}
	g.Go(func() error { keeper.Run(ctx, sourceOf(st, front)); return nil })
	g.Go(func() error { return self.keep(ctx, o.Log) })
	g.Go(func() error { self.rotate(ctx, st, front, o.Log); return nil })
	g.Go(func() error { self.turns(ctx, front, anew); return nil })
	g.Go(func() error { front.WatchRoom(ctx, st.Limits.HoldBack); return nil })
	g.Go(func() error { return self.settle(ctx, st, o.Log) })
	g.Go(func() error { return watch(ctx, st, anew) })
	o.Log.Info("ready", "cluster", string(self.authority.Trust().Cluster), "controller", self.Name, "agents",
		at.hosts.Addr().String(), "advertised", o.Advertise, "api", at.advertised, "peers", self.Peer, "socket",
		o.Socket)
	if o.Ready != nil {
		o.Ready()
	}
	return g.Wait()
}

// sourceOf is what snapshots by schedule are of.
func sourceOf(st *store.Store, front rpc.Front) snapshots.Source {
	return snapshots.Source{Database: st.SnapshotFile, Backup: front.Backup,
		Size: func(ctx context.Context) (size int64, err error) {
			s, err := st.Status(ctx)
			for _, m := range s.Members {
				if m.Health != nil {
					size = max(size, m.Health.Size)
				}
			}
			return size, err
		}}
}

// watch ends the run when etcd has ended, or the controller is to start anew.
func watch(ctx context.Context, st *store.Store, anew <-chan error) error {
	epoch := st.Cluster().Epoch
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-anew:
			return err
		case <-tick.C:
			if now := st.Cluster().Epoch; now != epoch {
				return fmt.Errorf("%w: the state was restored, epoch %d begins", errAnew, now)
			}
		case <-st.Done():
			return errors.New("the embedded etcd has ended: see the messages before this one; a controller that was " +
				"taken out of the cluster joins again with an empty data directory (heddle-controller join)")
		case <-ctx.Done():
			return nil
		}
	}
}

// answer serves until ctx ends. Agents that follow their slices are cut off then: they go to another controller.
func answer(ctx context.Context, srv *http.Server, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() {
		soon, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		if srv.Shutdown(soon) != nil {
			_ = srv.Close() // what did not end in time
		}
	})
	defer stop()
	srv.BaseContext = func(net.Listener) context.Context { return ctx }
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// listenUnix makes the socket for people, which root alone may use.
func listenUnix(path string) (net.Listener, error) {
	if err := ownfile.MakeDir(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("the directory of the controller's socket: %w", err)
	}
	if Answers(path) {
		return nil, fmt.Errorf("another controller answers at %s: give this one another --socket", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	old := syscall.Umask(0o177)
	l, err := net.Listen("unix", path)
	syscall.Umask(old)
	if err != nil {
		return nil, fmt.Errorf("listen for commands: %w", err)
	}
	return l, nil
}

// Answers reports whether a controller listens at a socket.
func Answers(path string) bool {
	c, err := net.Dial("unix", path)
	if err == nil {
		_ = c.Close()
	}
	return err == nil
}
