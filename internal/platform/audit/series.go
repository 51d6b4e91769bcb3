package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"heddle/internal/host/ownfile"
)

// series is a number of files, the oldest of which is removed when there are too many. A file's name has the number of
// its first entry, or a higher one than the file before, so that names sort by age.
type series struct {
	dir, name string
	most      int64 // bytes of one file
	files     int

	// syncing is held while the file is synced or exchanged, and taken before mu.
	syncing sync.Mutex
	synced  int64
	fresh   bool // the next file is a new one

	mu      sync.Mutex
	file    *os.File
	size    int64
	written int64 // bytes since the series was opened, of all files
	chain   link  // of the last line
}

func newSeries(dir, name string, most int64, files int) *series {
	return &series{dir: dir, name: name, most: most, files: files}
}

// paths are the files there are, the oldest first.
func (s *series) paths() ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(s.dir, s.name+"-*.jsonl"))
	slices.Sort(paths)
	return paths, err
}

// append writes a line, and returns when it is on disk. Of several that write at a time, one syncs for all.
func (s *series) append(e Entry) error {
	upTo, err := s.write(e)
	if err != nil {
		return err
	}
	s.syncing.Lock()
	defer s.syncing.Unlock()
	if s.synced >= upTo {
		return nil
	}
	s.mu.Lock()
	file, upTo := s.file, s.written
	s.mu.Unlock()
	if file == nil {
		return errors.New("its file could not be written to the disk")
	}
	if err := file.Sync(); err != nil {
		s.fresh = true // what is on disk of it nobody knows
		return errors.Join(err, s.leave())
	}
	s.synced = upTo
	return nil
}

// write writes a line for an entry, and returns up to where the series has to be synced to have it on disk.
func (s *series) write(e Entry) (int64, error) {
	line, err := json.Marshal(e)
	if err != nil {
		return 0, err
	}
	number, more := e.Number, int64(len(line)+longestChain)
	s.mu.Lock()
	for s.due(more) {
		s.mu.Unlock()
		if err := s.turn(number, more); err != nil {
			return 0, err
		}
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	if s.size == 0 {
		e.After = s.chain.String()
		if line, err = json.Marshal(e); err != nil {
			return 0, err
		}
	}
	line, next := chained(s.chain, line)
	line = append(line, '\n')
	if n, err := s.file.Write(line); err != nil {
		if n > 0 { // no half lines
			err = errors.Join(err, s.file.Truncate(s.size))
		}
		return 0, err
	}
	s.size += int64(len(line))
	s.written += int64(len(line))
	s.chain = next
	return s.written, nil
}

// due reports whether the next line has to go to another file. The caller holds mu.
func (s *series) due(more int64) bool {
	return s.file == nil || s.size > 0 && s.size+more > s.most
}

// turn begins another file where that is due; after a start it goes on in the last one.
func (s *series) turn(number, more int64) error {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	s.mu.Lock()
	due := s.due(more)
	s.mu.Unlock()
	if !due {
		return nil // another caller did it
	}
	if err := s.leave(); err != nil {
		return err
	}
	paths, err := s.paths()
	if err != nil {
		return err
	}
	path := s.path(number)
	if n := len(paths); n > 0 && path <= paths[n-1] { // the end of a call that began long before
		var last int64
		_, _ = fmt.Sscanf(filepath.Base(paths[n-1]), s.name+"-%d.jsonl", &last)
		path = s.path(last + 1)
	}
	if n := len(paths); n > 0 && !s.fresh {
		if fi, err := os.Stat(paths[n-1]); err == nil && fi.Size()+more <= s.most {
			path = paths[n-1]
		}
	}
	file, size, err := openLines(path)
	if err == nil {
		err = ownfile.SyncDir(s.dir)
	}
	if err != nil {
		return err
	}
	s.fresh = true
	s.mu.Lock()
	s.file, s.size = file, size
	s.mu.Unlock()
	return s.prune()
}

// path is that of a file that begins with the entry of that number.
func (s *series) path(number int64) string {
	return filepath.Join(s.dir, fmt.Sprintf("%s-%016d.jsonl", s.name, number))
}

// openLines opens a file to add lines to. A half line that a loss of power left is closed.
func openLines(path string) (*os.File, int64, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, 0, err
	}
	size, err := file.Seek(0, io.SeekEnd)
	last := []byte{'\n'}
	if err == nil && size > 0 {
		_, err = file.ReadAt(last, size-1)
	}
	if err == nil && last[0] != '\n' {
		_, err = file.WriteString("\n")
		size++
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, size, nil
}

// leave ends the present file. The caller holds syncing.
func (s *series) leave() error {
	s.mu.Lock()
	file, upTo := s.file, s.written
	s.file, s.size = nil, 0
	s.mu.Unlock()
	if file == nil {
		return nil
	}
	err := errors.Join(file.Sync(), file.Close())
	if err == nil {
		s.synced = upTo
	}
	return err
}

func (s *series) close() error {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	return s.leave()
}

// prune removes the oldest files.
func (s *series) prune() error {
	paths, err := s.paths()
	if err != nil {
		return err
	}
	for _, p := range paths[:max(0, len(paths)-s.files)] {
		if err := os.Remove(p); err != nil {
			return err
		}
	}
	return nil
}

// last is the highest number there is; 0 for none.
func (s *series) last() (highest int64, err error) {
	paths, err := s.paths()
	if err != nil || len(paths) == 0 {
		return 0, err
	}
	// A number that is drawn later than another may be written before it, and the end of a call long after its
	// beginning: the last file has the highest.
	_, err = read(paths[len(paths)-1], func(e Entry) { highest = max(highest, e.Number) })
	return highest, err
}

// longestLine is how long a line of a file can be.
const longestLine = 256 << 10

// read reads the entries of a file, and says how many lines can't be read, such as the last one of a controller that
// lost power.
func read(path string, each func(Entry)) (damaged int, err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil // it was the oldest, and has been removed
	}
	if err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 0, 64<<10), longestLine)
	for lines.Scan() {
		var e Entry
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Number <= 0 {
			damaged++
			continue
		}
		each(e)
	}
	return damaged, errors.Join(lines.Err(), f.Close())
}
