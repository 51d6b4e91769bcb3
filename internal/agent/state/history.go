package state

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"heddle/internal/host/ownfile"
)

// Limits of the history; the oldest versions are removed first. The newest one stays whatever its size.
const (
	mostVersions     = 50
	mostVersionBytes = 64 << 20
)

// ErrNoVersion means that the history does not have that version.
var ErrNoVersion = errors.New("the history does not hold it")

// Version is one configuration that was applied. The list of versions is in one file; their contents are YAML files
// beside it.
type Version struct {
	// Number counts from 1 and is never reused.
	Number int `json:"number"`
	// At is when the version was applied, By is the command that applied it: "apply heddle.yaml".
	At time.Time `json:"at"`
	By string    `json:"by"`
	// File is where the configuration came from.
	File string `json:"file"`
	// Sum is the SHA-256 of the content, in hexadecimal digits; Bytes is its length.
	Sum   string `json:"sha256"`
	Bytes int    `json:"bytes"`
	// Restores is the number of the version that it brought back; 0 for a configuration of its own.
	Restores int `json:"restores,omitempty"`
}

// Holds reports whether the version has that content.
func (v Version) Holds(content string) bool {
	return v.Bytes == len(content) && v.Sum == sum([]byte(content))
}

// History is the list of applied configurations, the newest last.
type History struct{ dir string }

// History returns the history, which has its own directory in the state directory.
func (s *Store) History() History { return History{filepath.Join(s.dir, "history")} }

func (h History) index() string { return filepath.Join(h.dir, "versions.json") }

func (h History) content(number int) string {
	return filepath.Join(h.dir, strconv.Itoa(number)+".yaml")
}

// versions is the content of the index.
type versions struct {
	Versions []Version `json:"versions"`
}

// List returns the versions, the oldest first; none if nothing was applied yet.
func (h History) List() ([]Version, error) {
	b, err := ownfile.Read(h.index())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var v versions
	if err == nil {
		if err = ownfile.CheckSeal(b); err == nil {
			err = json.Unmarshal(b, &v)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the list of applied configurations in %s cannot be read (%w): remove the directory "+
			"to begin anew",
			h.dir, err)
	}
	return v.Versions, nil
}

// Get returns a version with its content; ErrNoVersion if the history does not have it.
func (h History) Get(number int) (Version, []byte, error) {
	list, err := h.List()
	if err != nil {
		return Version{}, nil, err
	}
	i := slices.IndexFunc(list, func(v Version) bool { return v.Number == number })
	if i < 0 {
		return Version{}, nil, ErrNoVersion
	}
	text, err := ownfile.Read(h.content(number))
	if err == nil && sum(text) != list[i].Sum {
		err = ownfile.ErrSum
	}
	if err != nil {
		return Version{}, nil, fmt.Errorf("version %d of the configuration cannot be read: %s: %w", number,
			h.content(number), err)
	}
	return list[i], text, nil
}

// Keep adds the configuration, unless it is already the newest version. After a crash at any instant the list is either
// unchanged or has the new version.
func (h History) Keep(src Source, at time.Time) error {
	list, err := h.List()
	if err != nil {
		return err
	}
	v := Version{Number: 1, At: at.UTC(), By: src.By, File: src.File, Sum: sum([]byte(src.Content)),
		Bytes: len(src.Content), Restores: src.Restores}
	if len(list) > 0 {
		if last := list[len(list)-1]; last.Sum == v.Sum {
			return nil
		}
		v.Number = list[len(list)-1].Number + 1
	}
	if err := ownfile.MakeDir(h.dir, 0o700); err != nil {
		return err
	}
	if err := ownfile.Replace(h.content(v.Number), []byte(src.Content)); err != nil {
		return err
	}
	kept, gone := bounded(append(list, v))
	b, err := json.Marshal(versions{kept})
	if err != nil {
		return err
	}
	if err := ownfile.Replace(h.index(), ownfile.Seal(b[:len(b)-1])); err != nil {
		return err
	}
	for _, old := range gone {
		err = errors.Join(err, os.Remove(h.content(old.Number)))
	}
	return err
}

// bounded splits the versions into those that stay and those that go.
func bounded(list []Version) (kept, gone []Version) {
	first, bytes := len(list), 0
	for first > 0 && len(list)-first < mostVersions {
		if bytes += list[first-1].Bytes; bytes > mostVersionBytes && first < len(list) {
			break
		}
		first--
	}
	return list[first:], list[:first]
}

func sum(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }
