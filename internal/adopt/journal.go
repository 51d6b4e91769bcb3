package adopt

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// journalFormat is the version of the file.
const journalFormat = 1

// Journal keeps the records of a host's moves on disk.
type Journal struct {
	path    string
	Records []*Record
}

type journalFile struct {
	Format  int       `json:"format"`
	Records []*Record `json:"records"`
}

// OpenJournal reads the journal in the directory; without a file it is empty.
func OpenJournal(dir string) (*Journal, error) {
	j := &Journal{path: filepath.Join(dir, "adoptions.json")}
	b, err := os.ReadFile(j.path)
	if errors.Is(err, os.ErrNotExist) {
		return j, nil
	}
	var f journalFile
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	if err == nil && f.Format != journalFormat {
		err = fmt.Errorf("it has format %d, this program knows %d", f.Format, journalFormat)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s, which says where the host's addresses belong: %w; if they are where they belong, remove the file", j.path, err)
	}
	j.Records = f.Records
	return j, nil
}

// Save writes the journal, so that a crash at any instant leaves the old or the new one whole, on disk when it returns.
func (j *Journal) Save() error {
	if len(j.Records) == 0 {
		if err := os.Remove(j.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove the journal of the host's addresses: %w", err)
		}
		return nil
	}
	b, err := json.Marshal(journalFile{journalFormat, j.Records})
	if err == nil {
		err = replace(j.path, append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write the journal of the host's addresses: %w", err)
	}
	return nil
}

func replace(path string, content []byte) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Add takes a record in; Save writes it.
func (j *Journal) Add(r *Record) { j.Records = append(j.Records, r) }

// Remove forgets a record; Save writes that.
func (j *Journal) Remove(r *Record) {
	j.Records = slices.DeleteFunc(j.Records, func(o *Record) bool { return o == r })
}

// Of is the record of the host port of that name, or of the device, nil for none.
func (j *Journal) Of(name string) *Record {
	for _, r := range j.Records {
		if r.Port.Name == name || r.Config.Device == name {
			return r
		}
	}
	return nil
}

// Open is the record that waits for something, nil for none.
func (j *Journal) Open() *Record {
	for _, r := range j.Records {
		if r.Phase != Confirmed {
			return r
		}
	}
	return nil
}
