package state

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"heddle/internal/host/ownfile"
)

// Staged is a state file written beside the valid one, with its disk space reserved. It ends with Commit or Discard.
type Staged struct {
	store   *Store
	file    *os.File // nil if the valid file has the same content
	content *written
}

// Stage writes the state beside the valid file; a full disk is noticed here.
func (s *Store) Stage(st *State) (*Staged, error) {
	w, err := encode(&s.last, st)
	if err != nil {
		return nil, err
	}
	b, g := w.text, &Staged{store: s, content: w}
	if bytes.Equal(b, s.last.text) {
		return g, nil
	}
	if g.file, err = ownfile.Create(s.path() + ".new"); err != nil {
		return nil, fmt.Errorf("write the agent's state: %w", err)
	}
	// Some file systems reserve space only when data goes to disk: make them reserve it now.
	err = unix.Fallocate(int(g.file.Fd()), 0, 0, int64(len(b)))
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = nil
	}
	if err == nil {
		_, err = g.file.Write(b)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write the agent's state: %w", err), g.Discard())
	}
	return g, nil
}

// Commit makes the staged file the valid one. A crash at any instant leaves the old or the new file whole; the new one
// is on disk when Commit returns.
func (g *Staged) Commit() error {
	if g.file == nil {
		return nil
	}
	err := errors.Join(g.file.Sync(), g.file.Close())
	if err == nil {
		err = os.Rename(g.file.Name(), g.store.path())
	}
	if err == nil {
		err = ownfile.SyncDir(g.store.dir)
	}
	if err != nil {
		return fmt.Errorf("write the agent's state: %w", err)
	}
	g.store.last = *g.content
	return nil
}

// Discard removes the staged file; the valid file stays as it is.
func (g *Staged) Discard() error {
	if g.file == nil {
		return nil
	}
	return errors.Join(g.file.Close(), os.Remove(g.file.Name()))
}
