package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"

	"heddle/internal/host/ownfile"
)

// revisionGap is by how much the revision rises with a restore, so that none is given twice: more writes than a
// cluster makes between two snapshots.
const revisionGap = 1_000_000_000

// Snapshot writes the whole database, as of one revision, with a checksum at its end. It is a file as etcdutl makes it.
func (s *Store) Snapshot(ctx context.Context, to io.Writer) (size int64, err error) {
	from, err := s.client.Snapshot(ctx)
	if err != nil {
		return 0, &Unavailable{Cause: err}
	}
	defer from.Close()
	if size, err = io.Copy(to, from); err != nil {
		return size, fmt.Errorf("store: the snapshot broke off: %w", err)
	}
	return size, nil
}

// SnapshotFile writes a snapshot into a file that is there whole or not at all, readable by its owner alone.
func (s *Store) SnapshotFile(ctx context.Context, name string) (size int64, err error) {
	err = ownfile.Stream(name, func(w io.Writer) (err error) {
		size, err = s.Snapshot(ctx, w)
		return err
	})
	if err != nil {
		return 0, err
	}
	return size, nil
}

// Restore makes a data directory from a snapshot: the first member of a new cluster, which others join. The epoch rises
// when a store is opened on it, because etcd's cluster has another identifier. The directory must not hold any data.
func Restore(file string, o Options) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	if len(o.Endpoints) > 0 {
		return errors.New("store: an existing etcd cluster is restored by its own tools")
	}
	// etcd wants to make the directory itself.
	if err := os.Remove(o.Dir); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("store: %s is not empty: move its data away before a restore: %w", o.Dir, err)
	}
	advertise := []string{alone}
	if p := o.Peers; p != nil {
		if advertise = p.Advertise; len(advertise) == 0 {
			advertise = p.Listen
		}
	}
	var member []string
	for _, u := range advertise {
		member = append(member, o.Name+"="+u)
	}
	err = snapshot.NewV3(newEtcdLog(o.Log, &atomic.Bool{})).Restore(snapshot.RestoreConfig{SnapshotPath: file,
		Name: o.Name, OutputDataDir: o.Dir, PeerURLs: advertise, InitialCluster: strings.Join(member, ","),
		InitialClusterToken: NewID(), RevisionBump: revisionGap, MarkCompacted: true})
	if err != nil {
		return fmt.Errorf("store: restoring %s: %w", file, err)
	}
	return nil
}
