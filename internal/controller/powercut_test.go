package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/host/ownfile"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/store"
	"heddle/internal/test/testkit/powercut"
)

// written is something that a controller writes in its own directory, beside etcd's.
type written struct {
	powercut.Change
	// before is made and on the disk when the change begins; nil for nothing.
	before func(*self) error
	change func(*self) error
}

const ownID = "abcdefghijklmnopqrstuvwxyz"

// given is what a cluster gives a controller that joins it.
func given() *controllerv1.JoinControllerResponse {
	return &controllerv1.JoinControllerResponse{Controller: ownID, Authority: []byte("roots"),
		Secret: pki.NewSecret().Content(), Controllers: []string{"ctl1:7411"}}
}

// data writes what is in etcd's directory.
func data(s *self) error {
	return errors.Join(os.MkdirAll(s.file(etcdDir), 0o700),
		ownfile.Replace(filepath.Join(s.file(etcdDir), "data"), []byte("kept")))
}

// writing are the changes of a controller's own directory.
func writing() []written {
	foundsAlone := func(s *self) error {
		return errors.Join(data(s), ownfile.Replace(s.file(idFile), []byte("old")),
			s.recordStore(keptStore{Store: "old"}))
	}
	joins := func(s *self) error { return writeStaged(s.dir, "c2", given()) }
	begins := func(s *self) error { _, err := s.beginRestore("snapshot"); return err }
	row := func(name string, left func(*self) (string, error), before, change func(*self) error) written {
		reads := func(dir string) (string, error) { return left(&self{dir: dir}) }
		return written{powercut.Change{Name: name, Left: reads}, before, change}
	}
	all := []written{
		row("draw an id and a secret", drawnLeft, nil, func(s *self) error {
			_, err := selfOf(Options{Dir: s.dir})
			return err
		}),
		row("join a cluster", joinLeft, nil, joins),
		row("join in place of a cluster of its own", joinLeft, foundsAlone, joins),
		row("take what the cluster gave", joinLeft,
			func(s *self) error { return errors.Join(foundsAlone(s), joins(s)) },
			func(s *self) error { return takeStaged(s.dir) }),
		row("record the store", storeLeft, func(s *self) error {
			return errors.Join(data(s), ownfile.Replace(s.file(joinFile), []byte("{}")))
		}, func(s *self) error { return s.recordStore(keptStore{Store: "new"}) }),
		row("found a cluster", foundedLeft, nil, func(s *self) error {
			s.secret = pki.NewSecret()
			_, err := s.firstAuthority(context.Background(), Options{Name: "test"})
			return err
		}),
		row("record the first store", foundedLeft, func(s *self) error {
			return errors.Join(data(s), ownfile.Replace(s.file(foundingFile), nil), s.keepAuthority([]byte("roots")))
		}, func(s *self) error { return s.recordStore(keptStore{Store: "new"}) }),
		row("record another root", rootsLeft, func(s *self) error { return s.keepAuthority([]byte("one")) },
			func(s *self) error { return s.keepAuthority([]byte("two")) }),
		row("begin to restore", restoreLeft, data, begins),
		row("begin to restore without data", restoreLeft, nil, begins),
		row("take a restore back", restoreLeft, func(s *self) error { return errors.Join(data(s), begins(s)) },
			func(s *self) error {
				r, err := s.restoring()
				if err != nil {
					return err
				}
				return s.undoRestore(r.Aside)
			}),
	}
	for i := range all {
		all[i].Same = all[i].Name == "take what the cluster gave"
		all[i].Tidies = slices.Contains([]string{"record the store", "record the first store", "begin to restore"},
			all[i].Name)
	}
	return all
}

// drawnLeft is whether the controller is somebody: what is missing is drawn at the next start.
func drawnLeft(s *self) (string, error) {
	id, err := ownfile.Read(s.file(idFile))
	if err == nil && !store.IsID(string(id)) {
		return "", fmt.Errorf("the id is %q", id)
	}
	_, errSecret := secretThere(s)
	return fmt.Sprint(err == nil && errSecret == nil), nil
}

// secretThere reads the secret without making one.
func secretThere(s *self) (pki.Secret, error) {
	if there, err := s.has(secretFile); err != nil || !there {
		return pki.Secret{}, errors.Join(err, os.ErrNotExist)
	}
	return secretOf(s.file(secretFile))
}

// joinLeft is whose controller it is after it has taken what a cluster gave, which a start does first: of a copy, so
// that the directory stays as it is.
func joinLeft(s *self) (string, error) {
	tmp, err := os.MkdirTemp("", "heddle-left")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	if out, err := exec.Command("cp", "-a", s.dir+"/.", tmp).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	s = &self{dir: tmp}
	if err := takeStaged(s.dir); err != nil {
		return "", err
	}
	texts := map[string]string{}
	for _, name := range []string{idFile, nameFile, authorityFile, joinFile, storeFile} {
		if text, err := ownfile.Read(s.file(name)); err == nil {
			texts[name] = string(text)
		}
	}
	if _, err := secretThere(s); err == nil {
		texts[secretFile] = "a secret"
	}
	if there, err := s.has(etcdDir); err != nil || there {
		texts[etcdDir] = "data"
	}
	b, err := json.Marshal(texts)
	return string(b), err
}

// foundedLeft is whether the controller has an authority, and whether its store is recorded. A start refuses to begin
// one that it misses, which is none that was never recorded.
func foundedLeft(s *self) (string, error) {
	had, errHad := s.hadStore()
	authority, errAuthority := s.has(authorityFile)
	recorded, err := s.has(storeFile)
	if err = errors.Join(errHad, errAuthority, err); err == nil && had && !recorded {
		err = errors.New("it misses a store that it has never had")
	}
	return fmt.Sprintf("authority %v, store %v", authority, recorded), err
}

// storeLeft is whether the controller still joins, or has which store.
func storeLeft(s *self) (string, error) {
	if joins, err := s.has(joinFile); err != nil || joins {
		return "joins", err
	}
	text, err := ownfile.Read(s.file(storeFile))
	return "has " + string(text), err
}

// rootsLeft are the roots that it keeps.
func rootsLeft(s *self) (string, error) {
	text, err := ownfile.Read(s.file(authorityFile))
	return string(text), err
}

// restoreLeft is whether a restore is under way, and what is left of the data from before it, wherever that is.
func restoreLeft(s *self) (string, error) {
	r, err := s.restoring()
	if err != nil {
		return "", err
	}
	text, where := "nothing is restored", s.file(etcdDir)
	if r != nil {
		if text = "restores " + r.From; r.Aside != "" {
			if _, err := os.Lstat(r.Aside); err == nil {
				where = r.Aside
			}
		}
	}
	kept, err := ownfile.Read(filepath.Join(where, "data"))
	if errors.Is(err, os.ErrNotExist) {
		return text + "; no data", nil
	}
	return text + "; " + strings.TrimSpace(string(kept)), err
}

// The child makes one change when it is told to, and says whether that was acknowledged.
func TestPowerCutChild(t *testing.T) {
	powercut.Child(t, func(name, dir string) (func() error, error) {
		all, s := writing(), &self{dir: dir}
		w := all[slices.IndexFunc(all, func(w written) bool { return w.Name == name })]
		err := ownfile.MakeDir(dir, 0o700)
		if err == nil && w.before != nil {
			err = w.before(s)
		}
		return func() error { return w.change(s) }, err
	})
}

// Whatever step of a change of its own directory the power is taken at, a controller begins with what it had before the
// change or with all of it; a change that was acknowledged is there.
func TestS114_AControllerThatLosesItsPowerKeepsWhatItAcknowledged(t *testing.T) {
	disk := powercut.NewDisk(t)
	for _, w := range writing() {
		t.Run(w.Name, func(t *testing.T) { disk.Walk(t, "TestPowerCutChild", w.Change) })
	}
}
