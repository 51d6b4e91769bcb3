package adopt

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"heddle/internal/host/ownfile"
)

// journalFormat is the version of the file.
const journalFormat = 1

// Journal keeps on disk what is undone automatically: the records of moves of the host's addresses, and the change that
// is on trial.
type Journal struct {
	path    string
	Records []*Record
	Change  *Change // nil for none
}

type journalFile struct {
	Format  int       `json:"format"`
	Records []*Record `json:"records"`
	Change  *Change   `json:"change,omitempty"`
}

// OpenJournal reads the journal in the directory; without a file it is empty.
func OpenJournal(dir string) (*Journal, error) {
	j := &Journal{path: filepath.Join(dir, "adoptions.json")}
	b, err := ownfile.Read(j.path)
	if errors.Is(err, os.ErrNotExist) {
		return j, nil
	}
	var f journalFile
	if err == nil {
		err = ownfile.CheckSeal(b)
	}
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	if err == nil && f.Format != journalFormat {
		err = fmt.Errorf("it has format %d, this program knows %d", f.Format, journalFormat)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s, which says where the host's addresses belong: %w; if they are where they "+
			"belong, remove the file", j.path, err)
	}
	j.Records, j.Change = f.Records, f.Change
	return j, nil
}

// Save writes the journal; an empty one has no file. A crash at any instant leaves the old or the new journal
// whole, and the new one is on disk when Save returns.
func (j *Journal) Save() error {
	if len(j.Records) == 0 && j.Change == nil {
		if err := ownfile.Remove(j.path); err != nil {
			return fmt.Errorf("remove the journal of the host's addresses: %w", err)
		}
		return nil
	}
	b, err := json.Marshal(journalFile{journalFormat, j.Records, j.Change})
	if err == nil {
		err = ownfile.Replace(j.path, ownfile.Seal(b[:len(b)-1])) // without its closing bracket
	}
	if err != nil {
		return fmt.Errorf("write the journal of the host's addresses: %w", err)
	}
	return nil
}

// Add adds a record; Save writes it.
func (j *Journal) Add(r *Record) { j.Records = append(j.Records, r) }

// Remove removes a record; Save writes the removal.
func (j *Journal) Remove(r *Record) {
	j.Records = slices.DeleteFunc(j.Records, func(o *Record) bool { return o == r })
}

// Of returns the record of the host port or the device of that name, nil if there is none.
func (j *Journal) Of(name string) *Record {
	for _, r := range j.Records {
		if r.Port.Name == name || r.Config.Device == name {
			return r
		}
	}
	return nil
}

// OfPort returns the record of a host port, nil for one that has adopted nothing.
func (j *Journal) OfPort(name string) *Record {
	for _, r := range j.Records {
		if r.Port.Name == name {
			return r
		}
	}
	return nil
}

// Open returns the record whose move is not finished, nil if there is none.
func (j *Journal) Open() *Record {
	for _, r := range j.Records {
		if r.Phase != Confirmed {
			return r
		}
	}
	return nil
}
