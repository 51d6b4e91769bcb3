package controller

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"heddle/internal/host/ownfile"
	"heddle/internal/platform/store"
)

// keptStore is which store a controller has.
type keptStore struct {
	store.Etcd
	// Store is what the store was called when its cluster began: etcd gives a cluster that begins anew at the same
	// address the same identifiers.
	Store string `json:"store"`
}

// A controller that has an identity has a store. Etcd would begin an empty one where its directory is missing, as when
// a disk is not mounted: a second cluster of the same name, which takes changes and tells hosts that they were removed.

// Files of the data directory that say what is expected below etcdDir.
const (
	storeFile    = "etcd.json" // which member of which of etcd's clusters the data is of
	foundingFile = "founding"  // there while the first controller of a cluster has its authority and no store yet
)

// missingStore is how a controller without its store comes back.
const missingStore = "If it is on a disk that is not mounted, or lies elsewhere, put it back and start again. If it " +
	"is lost: " + anew

// anew is how a controller without a store gets one.
const anew = "where other controllers have the cluster, run \"heddle-controller remove NAME\" and " +
	"\"heddle-controller token\" at one of them and \"heddle-controller join\" here; where there is none, " +
	"\"heddle-controller restore SNAPSHOT\" here"

// expectStore refuses to begin an empty store in place of the one that this controller had, and a store that is damaged
// or another controller's.
func (s *self) expectStore() error {
	if err := s.notRestoring(); err != nil {
		return err
	}
	if !s.begun() {
		had, err := s.hadStore()
		if err == nil && had {
			err = fmt.Errorf("the controller's store is missing: %s has no log of etcd, and %s has the identity of a "+
				"controller. A start would make a new, empty cluster. %s", s.file(etcdDir), s.dir, missingStore)
		}
		return err
	}
	have, err := store.Inspect(s.file(etcdDir))
	var damaged *store.Damaged
	if errors.As(err, &damaged) {
		return fmt.Errorf("the controller's store cannot be read: %w. Nothing was changed. Move %s away; %s", damaged,
			s.file(etcdDir), anew)
	}
	if err != nil {
		return err
	}
	kept, err := s.keptStore()
	if err != nil || kept == nil || kept.Etcd == have {
		return err
	}
	return s.otherStore(have, kept.Etcd)
}

// otherStore is the error of a store that is not the one that was recorded.
func (s *self) otherStore(have, kept store.Etcd) error {
	return fmt.Errorf("%s is not this controller's store: it is of member %s of etcd's cluster %s, and this "+
		"controller is member %s of cluster %s (%s). %s", s.file(etcdDir), have.Member, have.Cluster, kept.Member,
		kept.Cluster, s.file(storeFile), missingStore)
}

// hadStore reports whether this controller's store has begun some day: it has what a cluster gives, and is neither
// about to join one nor to found it.
func (s *self) hadStore() (bool, error) {
	for _, name := range []string{joinFile, foundingFile} {
		if there, err := s.has(name); there || err != nil {
			return false, err
		}
	}
	for _, name := range []string{storeFile, authorityFile} {
		if there, err := s.has(name); there || err != nil {
			return there, err
		}
	}
	return false, nil
}

func (s *self) has(name string) (bool, error) {
	_, err := os.Lstat(s.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// keptStore is what was recorded of the store, nil for nothing: of a controller that has not started since.
func (s *self) keptStore() (*keptStore, error) {
	text, err := ownfile.Read(s.file(storeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var of keptStore
	if err := json.Unmarshal(text, &of); err != nil || of.Etcd == (store.Etcd{}) {
		return nil, fmt.Errorf("%s is damaged: remove it where %s is this controller's own", s.file(storeFile),
			s.file(etcdDir))
	}
	return &of, nil
}

// keepStore records which store this controller has, and that nothing is left to begin. A store that etcd calls as the
// one before, and that is another one, is refused.
func (s *self) keepStore(st *store.Store) error {
	kept, err := s.keptStore()
	if err != nil {
		return err
	}
	now := keptStore{Etcd: store.EtcdOf(st), Store: st.Cluster().ID}
	if kept != nil && kept.Store != now.Store {
		return s.otherStore(store.Etcd{Member: now.Member, Cluster: now.Store}, store.Etcd{Member: kept.Member,
			Cluster: kept.Store})
	}
	if kept != nil && *kept == now {
		return s.drop(joinFile, foundingFile)
	}
	return s.recordStore(now)
}

// recordStore records a store, and then that nothing is left to begin.
func (s *self) recordStore(now keptStore) error {
	text, err := json.Marshal(now)
	if err != nil {
		return err
	}
	if err := ownfile.Replace(s.file(storeFile), text); err != nil {
		return err
	}
	return s.drop(joinFile, foundingFile)
}

// drop removes files that may not be there.
func (s *self) drop(names ...string) error {
	for _, name := range names {
		if err := ownfile.Remove(s.file(name)); err != nil {
			return err
		}
	}
	return nil
}
