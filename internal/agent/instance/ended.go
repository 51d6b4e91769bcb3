package instance

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"heddle/internal/host/ownfile"
)

// A hook that is called at the end of a guest while no agent answers leaves a note for the next one: otherwise nobody
// would ever tell that the guest's ports are over. The notes are gone after a reboot.

// Sightings is the file with the dates of the agent's findings.
func (p Paths) Sightings(agent string) string { return filepath.Join(p.Run, agent+".seen") }

// Ended returns the directory of the notes for the agent of that name.
func (p Paths) Ended(name string) string { return filepath.Join(p.Run, name+".ended") }

// NoteEnded notes whether the guest with a UUID has ended.
func (p Paths) NoteEnded(name, uuid string, ended bool) error {
	dir := p.Ended(name)
	if !ended {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return ownfile.Remove(filepath.Join(dir, filepath.Base(uuid)))
	}
	if _, err := os.Stat(p.Run); errors.Is(err, fs.ErrNotExist) { // no agent has run since the host has booted
		return nil
	}
	if err := ownfile.MakeDir(dir, 0o700); err != nil {
		return err
	}
	f, err := ownfile.Create(filepath.Join(dir, filepath.Base(uuid)))
	if err != nil {
		return err
	}
	return f.Close()
}

// NotedEnded returns the UUIDs of the guests that have ended while the agent did not answer.
func (p Paths) NotedEnded(name string) (uuids []string, err error) {
	files, err := os.ReadDir(p.Ended(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, f := range files {
		uuids = append(uuids, f.Name())
	}
	return uuids, err
}

// DropEnded removes the notes about those guests, once the agent has acted on them. Others may have been written since.
func (p Paths) DropEnded(name string, uuids []string) error {
	var errs []error
	for _, uuid := range uuids {
		errs = append(errs, ownfile.Remove(filepath.Join(p.Ended(name), filepath.Base(uuid))))
	}
	return errors.Join(errs...)
}
