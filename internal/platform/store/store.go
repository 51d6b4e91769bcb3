package store

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
)

// Store is one controller's access to the state. Its methods may be called by several goroutines.
type Store struct {
	opts Options
	keys layout
	log  *slog.Logger

	client  *clientv3.Client
	etcd    *embed.Etcd // nil with an existing cluster
	closing *atomic.Bool
	// borrowed says that the client and etcd belong to another store.
	borrowed bool

	mem   *memory
	batch *batcher
	stale staleness
	// identity is what the cluster is known by.
	identity atomic.Pointer[Cluster]
	keeper   *keeper
	// Limits say whether a write can be borne.
	Limits *Limits

	// ctx ends with the store; batchDone is closed when the batcher has answered everybody.
	ctx       context.Context
	stop      context.CancelFunc
	running   sync.WaitGroup
	batchDone chan struct{}
	closeOnce sync.Once
}

// Open starts or joins etcd, reads the state and follows it. It waits for a quorum as long as the context allows.
func Open(ctx context.Context, o Options) (*Store, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{opts: o, keys: layout{o.Prefix}, log: o.Log.With("component", "store"), mem: newMemory(),
		closing: &atomic.Bool{}, batchDone: make(chan struct{}), Limits: &Limits{dir: o.Dir, quota: o.QuotaBytes}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if err := s.connect(ctx); err != nil {
		s.disconnect()
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		s.disconnect()
		return nil, fmt.Errorf("store: %w", err)
	}
	return s, nil
}

func (s *Store) connect(ctx context.Context) (err error) {
	if len(s.opts.Endpoints) == 0 {
		return s.startEmbedded(ctx)
	}
	log := newEtcdLog(s.opts.Log, s.closing)
	s.client, err = clientv3.New(clientv3.Config{Endpoints: s.opts.Endpoints, TLS: s.opts.TLS, Logger: log,
		Username: s.opts.Username, Password: s.opts.Password, DialTimeout: s.opts.Timeout,
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 5 * time.Second})
	if err != nil {
		return fmt.Errorf("store: etcd at %v: %w", s.opts.Endpoints, err)
	}
	return nil
}

// disconnect ends the connection and the embedded etcd. From then on etcd's messages are about its own end.
func (s *Store) disconnect() {
	s.stop()
	if s.borrowed {
		return
	}
	s.closing.Store(true)
	if s.client != nil {
		if err := s.client.Close(); err != nil {
			s.log.Debug("closing the connection to etcd", "err", err)
		}
	}
	if s.etcd != nil {
		s.etcd.Close()
	}
}

// begin reads the state and starts what follows it.
func (s *Store) begin(ctx context.Context) error {
	s.keeper = newKeeper(s)
	if err := steadily(ctx, func() error { return s.identify(ctx) }); err != nil {
		return err
	}
	m := newMirror(s)
	if err := steadily(ctx, func() error { return m.load(ctx) }); err != nil {
		return err
	}
	s.keeper.began(s.mem.revision())
	s.batch = newBatcher(s)
	s.running.Go(func() { m.run(s.ctx) })
	s.running.Go(func() {
		s.batch.run(s.ctx)
		close(s.batchDone)
	})
	every := time.Second
	if s.opts.Fast {
		every = 20 * time.Millisecond
	}
	s.running.Go(func() { m.probe(s.ctx, every) })
	s.running.Go(s.keeper.run)
	return nil
}

// known is what the memory has of a key of etcd, and as of which revision. Of keys that aren't in memory it supposes
// that there is none; a transaction that is built on that compares it.
func (s *Store) known(key string) (entry, int64) {
	k, ok := s.keys.parse(key)
	if !ok {
		return entry{}, 0
	}
	o, rev := s.mem.get(k)
	if o == nil {
		return entry{}, rev
	}
	return entry{o.Version, o.value}, rev
}

// Close ends the store; an embedded etcd hands its leadership over first.
func (s *Store) Close() {
	s.closeOnce.Do(func() {
		s.stop()
		s.running.Wait()
		s.disconnect()
	})
}

// Done is closed when the embedded etcd has ended by itself; the process should end then, and start again.
func (s *Store) Done() <-chan struct{} { return s.died() }

// Revision is that of the state in memory.
func (s *Store) Revision() int64 { return s.mem.revision() }

// Get returns an object. It is that of the memory: see Stale.
func (s *Store) Get(k Key) (Object, bool) {
	o, _ := s.mem.get(k)
	if o == nil {
		return Object{}, false
	}
	return *o, true
}

// List returns the objects of a kind, by name.
func (s *Store) List(kind Kind) []Object {
	objects := s.mem.list(kind)
	list := make([]Object, len(objects))
	for i, o := range objects {
		list[i] = *o
	}
	return list
}

// Kinds are those that there are objects of, also such as this version doesn't know.
func (s *Store) Kinds() []Kind { return s.mem.kinds() }

// Watch sends the state and then its changes, revision by revision; nothing is lost and nothing comes twice. It
// continues after a revision if that is recent enough, and begins with the whole state otherwise. The channel is closed
// when the context or the store ends. The receiver may be slow: who falls far behind gets the whole state again.
func (s *Store) Watch(ctx context.Context, fromRevision int64) <-chan Batch {
	to := make(chan Batch)
	go func() {
		defer close(to)
		p := &position{rev: fromRevision}
		for {
			batch, changed := s.mem.next(p)
			if batch != nil {
				select {
				case to <- *batch:
				case <-ctx.Done():
					return
				case <-s.ctx.Done():
					return
				}
				continue
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			case <-s.ctx.Done():
				return
			}
		}
	}()
	return to
}

// Sync returns when the memory holds everything that was written before, by whichever controller.
func (s *Store) Sync(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*s.opts.Timeout)
	defer cancel()
	revision, err := s.touch(ctx)
	if err != nil {
		return s.keeper.refused(err)
	}
	if err := s.mem.wait(ctx, revision); err != nil {
		return &Unavailable{Cause: err}
	}
	return nil
}

// touch writes something that nobody reads: a write is the one thing that all versions of etcd order with the events of
// a watch. It is repeated while a leader is elected: etcd drops what comes meanwhile, and says so late.
func (s *Store) touch(ctx context.Context) (revision int64, err error) {
	if s.Limits.room() != nil { // all that an embedded etcd has is below the prefix
		head, err := s.client.Get(ctx, s.keys.meta("sync"))
		if err != nil {
			return 0, err
		}
		return head.Header.Revision, nil
	}
	for {
		one, cancel := context.WithTimeout(ctx, s.opts.Timeout/4)
		resp, err := s.client.Put(one, s.keys.meta("sync"), "")
		late := one.Err() != nil
		cancel()
		if err == nil {
			return resp.Header.Revision, nil
		}
		if !late && !passes(err) || !pause(ctx, 50*time.Millisecond) {
			return 0, err
		}
	}
}
