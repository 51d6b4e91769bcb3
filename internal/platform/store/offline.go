package store

import (
	"errors"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/pkg/v3/traceutil"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.uber.org/zap"
)

// Offline writes to the database of a store that does not run, for measurements: each write is a revision, as one of
// etcd is, without the log of a cluster, which takes most of the time. etcd goes on behind the last.
type Offline struct {
	keys layout
	be   backend.Backend
	kv   mvcc.KV
}

// OpenOffline closes a store with etcd inside that has no peers, and opens its database.
func OpenOffline(s *Store) (*Offline, error) {
	if s.opts.Dir == "" || s.opts.Peers != nil {
		return nil, errors.New("store: only the database of a single etcd inside can be written offline")
	}
	path := filepath.Join(s.opts.Dir, "member", "snap", "db")
	s.Close()
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	o := &Offline{keys: s.keys, be: backend.NewDefaultBackend(zap.NewNop(), path)}
	o.kv = mvcc.NewStore(zap.NewNop(), o.be, &lease.FakeLessor{}, mvcc.StoreConfig{})
	return o, nil
}

// Put writes objects that exist already, and a record of the change, as one revision, which it returns.
func (o *Offline) Put(objects []Object, record Change) int64 {
	txn := o.kv.Write(traceutil.TODO())
	for _, b := range objects {
		txn.Put([]byte(o.keys.object(b.Key)), encode(headOf(b.value), b.Doc), lease.NoLease)
	}
	txn.Put([]byte(o.keys.past(record.base())), record.Record, lease.NoLease)
	revision := txn.Rev() + 1
	txn.End()
	return revision
}

// Close ends it: everything is on disk.
func (o *Offline) Close() error {
	o.be.ForceCommit()
	return errors.Join(o.kv.Close(), o.be.Close())
}
