package controller

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"heddle/internal/host/ownfile"
)

// restoringFile is there while a snapshot is being restored: etcd's directory is then not yet the cluster's state, as
// hosts and tokens count in it that nobody has confirmed.
const restoringFile = "restoring.json"

// restoring says what is being restored.
type restoring struct {
	// From is the snapshot.
	From string    `json:"from"`
	At   time.Time `json:"at"`
	// Aside is where the data from before is moved to; "" for none.
	Aside string `json:"aside,omitempty"`
}

// restoring is the restore that was begun and has not ended; nil for none.
func (s *self) restoring() (*restoring, error) {
	text, err := ownfile.Read(s.file(restoringFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	r := &restoring{}
	if err == nil && json.Unmarshal(text, r) != nil {
		r = &restoring{From: "a snapshot"} // it is replaced as a whole: somebody else has written there
	}
	return r, err
}

// notRestoring refuses to go on with a state of which only a part is restored.
func (s *self) notRestoring() error {
	r, err := s.restoring()
	if err != nil || r == nil {
		return err
	}
	before := ""
	if _, err := os.Lstat(r.Aside); r.Aside != "" && err == nil {
		before = fmt.Sprintf(" The data from before is in %s.", r.Aside)
	}
	return fmt.Errorf("the restore of %s was cut off at %s, and %s has a part of it: run "+
		"\"heddle-controller restore\" again with that snapshot.%s", r.From, r.At.Local().Format(time.DateTime),
		s.file(etcdDir), before)
}

// beginRestore says that a restore begins, before anything is changed, and where the data from before goes. What a
// restore has left that was cut off is removed.
func (s *self) beginRestore(from string) (aside string, err error) {
	was, err := s.restoring()
	if err != nil {
		return "", err
	}
	dir := s.file(etcdDir)
	if was != nil {
		if _, err := os.Lstat(was.Aside); was.Aside == "" || err == nil { // else the data was not moved yet
			if err := errors.Join(os.RemoveAll(dir), ownfile.SyncDir(s.dir)); err != nil {
				return "", err
			}
			aside = was.Aside
		}
	}
	moves := false
	if left, err := os.ReadDir(dir); err == nil && len(left) > 0 {
		moves = true
		aside = unused(dir + ".before-restore-" + time.Now().UTC().Format("20060102-150405"))
	}
	text, err := json.Marshal(restoring{From: from, At: time.Now(), Aside: aside})
	if err != nil {
		return "", err
	}
	if err := ownfile.Replace(s.file(restoringFile), text); err != nil || !moves {
		return aside, err
	}
	return aside, s.moveAside(dir, aside)
}

// moveAside moves the data from before out of the way of a restore. Where that fails nothing is restored, and nothing
// is left that says so.
func (s *self) moveAside(dir, aside string) error {
	err := ownfile.Rename(dir, aside)
	if err == nil {
		return nil
	}
	if _, moved := os.Lstat(dir); moved != nil { // it is not known whether that is on disk
		return err
	}
	if undo := s.drop(restoringFile); undo != nil {
		return fmt.Errorf("%w; %s still says that a restore is under way, though nothing was changed: remove it to go "+
			"on with the data from before: %w", err, s.file(restoringFile), undo)
	}
	return err
}

// unused is a path at which nothing is: that one, or with a number behind it.
func unused(path string) string {
	for n, try := 2, path; ; n++ {
		if _, err := os.Lstat(try); err != nil { // Rename says what else is wrong
			return try
		}
		try = fmt.Sprintf("%s-%d", path, n)
	}
}

// undoRestore brings back the data from before.
func (s *self) undoRestore(aside string) error {
	if err := errors.Join(os.RemoveAll(s.file(etcdDir)), ownfile.SyncDir(s.dir)); err != nil {
		return err
	}
	if aside != "" {
		if err := ownfile.Rename(aside, s.file(etcdDir)); err != nil {
			return err
		}
	}
	return s.drop(restoringFile)
}
