package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
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
	// Etcd is the identifier of etcd's cluster. A restore gives a new one.
	Etcd string `json:"etcd,omitempty"`
}

// Cluster returns what the cluster is known by.
func (s *Store) Cluster() Cluster { return *s.identity.Load() }

// chunkGap is how many numbers of chunks are left out after a restore. Ports that were made after the snapshot had some
// of them, and places in chunks of before; none of those is given again.
const chunkGap = 1 << 20

// identify reads which cluster this is, and makes a new one where there is none. After a restore the epoch rises.
func (s *Store) identify(ctx context.Context) error {
	kv, etcd, err := s.readIdentity(ctx)
	if err != nil {
		return err
	}
	s.keeper.begin(ctx)
	was := s.Cluster().Etcd
	// A member that became a cluster of its own keeps etcd's identifier, and may lack what the others had.
	forced := s.opts.ForceNewCluster && s.etcd != nil && !s.borrowed
	if was == etcd && !forced {
		return nil
	}
	s.log.Warn("the state was restored: a new epoch begins", "epochBefore", s.Cluster().Epoch)
	return s.raiseEpoch(ctx, kv, etcd)
}

// readIdentity reads the key that says which cluster this is, or makes it. It returns etcd's own identifier too.
func (s *Store) readIdentity(ctx context.Context) (kv *mvccpb.KeyValue, etcd string, err error) {
	key := s.keys.meta("cluster")
	head, err := s.client.Get(ctx, key)
	if err != nil {
		return nil, "", fmt.Errorf("etcd doesn't answer: %w", err)
	}
	etcd = strconv.FormatUint(head.Header.ClusterId, 16)
	if len(head.Kvs) == 0 {
		text := mustJSON(Cluster{ID: NewID(), Epoch: 1, Etcd: etcd})
		_, err = s.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
			Then(clientv3.OpPut(key, string(text))).Commit()
		if err == nil {
			head, err = s.client.Get(ctx, key)
		}
		if err != nil {
			return nil, "", fmt.Errorf("etcd doesn't answer: %w", err)
		}
	}
	if s.identified(head.Kvs); s.identity.Load() == nil {
		return nil, "", fmt.Errorf("the key %s of etcd is none of a Heddle cluster", key)
	}
	return head.Kvs[0], etcd, nil
}

// RaiseEpoch begins a new epoch. That happens by itself after a restore that the store can know of; of one that an
// existing cluster's own tools made, with the members and the token that there were before, it can't.
func (s *Store) RaiseEpoch(ctx context.Context) error {
	kv, etcd, err := s.readIdentity(ctx)
	if err != nil {
		return err
	}
	return s.raiseEpoch(ctx, kv, etcd)
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

// replaced begins a new epoch after etcd's state was replaced under a running store, unless another controller did.
func (s *Store) replaced(ctx context.Context) error {
	before := s.Cluster().Epoch
	kv, etcd, err := s.readIdentity(ctx)
	if err != nil || s.Cluster().Epoch > before {
		return err
	}
	return s.raiseEpoch(ctx, kv, etcd)
}

// raiseEpoch makes a new epoch, and leaves a gap in the numbers of ports.
func (s *Store) raiseEpoch(ctx context.Context, kv *mvccpb.KeyValue, etcd string) error {
	var fields map[string]json.RawMessage // a newer version may have added some
	if err := json.Unmarshal(kv.Value, &fields); err != nil {
		return err
	}
	next := s.Cluster()
	next.Epoch, next.Etcd = max(next.Epoch+1, time.Now().Unix()), etcd
	fields["epoch"], fields["etcd"] = mustJSON(next.Epoch), mustJSON(next.Etcd)
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
		first := strconv.FormatInt(number+chunkGap, 10)
		ops = append(ops, clientv3.OpPut(chunks, first), clientv3.OpPut(s.keys.meta("chunksFrom"), first))
	}
	resp, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", kv.ModRevision)).
		Then(ops...).Commit()
	if err != nil {
		return fmt.Errorf("raising the epoch: %w", err)
	}
	if !resp.Succeeded { // another controller did it
		_, _, err = s.readIdentity(ctx)
		return err
	}
	s.identity.Store(&next)
	return nil
}
