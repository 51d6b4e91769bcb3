package store

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Cluster is what a Heddle cluster is known by.
type Cluster struct {
	// ID is given once, and stays through restores.
	ID string `json:"id"`
	// Epoch rises with every restore: a revision of an older epoch says nothing about this one. It is 1 at first, and
	// then the time of the restore in seconds, so that two restores of one snapshot differ.
	Epoch int64 `json:"epoch"`
}

// Cluster returns what the cluster is known by.
func (s *Store) Cluster() Cluster { return *s.identity.Load() }

// restoredMark is the file in the data directory that says that the epoch has to rise at the next start.
const restoredMark = "heddle-restored"

// chunkGap is how many numbers of chunks are left out after a restore. Ports that were made after the snapshot had some
// of them; none of those is given again.
const chunkGap = 1 << 20

// identify reads which cluster this is, and makes a new one where there is none. After a restore the epoch rises.
func (s *Store) identify(ctx context.Context) error {
	key := s.keys.meta("cluster")
	text := mustJSON(Cluster{ID: newID(), Epoch: 1})
	resp, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, string(text)), clientv3.OpGet(key)).Else(clientv3.OpGet(key)).Commit()
	if err != nil {
		return fmt.Errorf("etcd doesn't answer: %w", err)
	}
	kvs := resp.Responses[len(resp.Responses)-1].GetResponseRange().Kvs
	if s.identified(kvs); s.identity.Load() == nil {
		return fmt.Errorf("the key %s of etcd is none of a Heddle cluster", key)
	}
	least, err := s.nextEpoch()
	if least == 0 || err != nil {
		return err
	}
	if err := s.raiseEpoch(ctx, kvs[0], least); err != nil {
		return fmt.Errorf("raising the epoch after a restore: %w", err)
	}
	s.log.Warn("the state was restored: a new epoch begins", "epoch", s.Cluster().Epoch)
	if err := os.Remove(filepath.Join(s.opts.Dir, restoredMark)); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// nextEpoch is what the epoch has to be at least, because the state was restored; 0 = it was not.
func (s *Store) nextEpoch() (int64, error) {
	if s.etcd == nil || s.borrowed {
		return 0, nil
	}
	text, err := os.ReadFile(filepath.Join(s.opts.Dir, restoredMark))
	switch {
	case err == nil:
		return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	case !os.IsNotExist(err):
		return 0, err
	case s.opts.ForceNewCluster:
		return time.Now().Unix(), nil
	}
	return 0, nil
}

// identified takes the identity from the key that holds it.
func (s *Store) identified(kvs []*mvccpb.KeyValue) {
	for _, kv := range kvs {
		var c Cluster
		if string(kv.Key) == s.keys.meta("cluster") && json.Unmarshal(kv.Value, &c) == nil && c.ID != "" {
			s.identity.Store(&c)
		}
	}
}

// raiseEpoch makes a new epoch, and leaves a gap in the numbers of ports.
func (s *Store) raiseEpoch(ctx context.Context, kv *mvccpb.KeyValue, least int64) error {
	var fields map[string]json.RawMessage // a newer version may have added some
	if err := json.Unmarshal(kv.Value, &fields); err != nil {
		return err
	}
	next := s.Cluster()
	next.Epoch = max(next.Epoch+1, least)
	fields["epoch"] = mustJSON(next.Epoch)
	key, chunks := string(kv.Key), s.keys.meta("chunks")
	ops := []clientv3.Op{clientv3.OpPut(key, string(mustJSON(fields)))}
	numbers, err := s.client.Get(ctx, chunks)
	if err != nil {
		return err
	}
	for _, n := range numbers.Kvs {
		number, err := strconv.ParseInt(string(n.Value), 10, 64)
		if err != nil {
			return err
		}
		ops = append(ops, clientv3.OpPut(chunks, strconv.FormatInt(number+chunkGap, 10)))
	}
	resp, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", kv.ModRevision)).
		Then(ops...).Commit()
	if err == nil && !resp.Succeeded {
		err = &Conflict{Key: Key{"cluster", key}, Asked: kv.ModRevision}
	}
	if err == nil {
		s.identity.Store(&next)
	}
	return err
}
