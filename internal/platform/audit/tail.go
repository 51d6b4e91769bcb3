package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Series are the names of the series of files.
func Series() []string { return append([]string{"changes", "refusals"}, laneNames()...) }

// series is the one of that name; that of changes for one that there is not.
func (l *Log) series(name string) *series {
	for _, s := range l.all() {
		if s.name == name {
			return s
		}
	}
	return l.changes
}

// Line is a line of the log as it is in its file, with what it says.
type Line struct {
	Series string
	// Text is the line with its hash, without the line feed.
	Text []byte
	Entry
}

// Position is up to where somebody has read a series: the name of a file and the bytes of it. The zero value is before
// everything.
type Position struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
}

// Read returns complete lines of a series from a position on, at most so many, and the position after them. lost: lines
// behind the position were removed for age before they were read.
func (l *Log) Read(name string, from Position, most int) (lines []Line, next Position, lost bool, err error) {
	s := l.series(name)
	paths, err := s.paths()
	if err != nil {
		return nil, from, false, err
	}
	i := slices.IndexFunc(paths, func(p string) bool { return filepath.Base(p) >= from.File })
	if i < 0 {
		return nil, from, false, nil
	}
	if base := filepath.Base(paths[i]); base != from.File {
		// The file that was read last has gone. Whether all of it had been read nobody knows.
		lost = from.File != ""
		from = Position{File: base}
	}
	for ; i < len(paths) && len(lines) < most; i++ {
		if base := filepath.Base(paths[i]); base != from.File {
			from = Position{File: base}
		}
		more, read, err := readLines(paths[i], name, from.Offset, most-len(lines))
		if errors.Is(err, os.ErrNotExist) {
			return lines, from, lost, nil // it was removed a moment ago: the next call says so
		}
		if err != nil {
			return lines, from, lost, err
		}
		lines, from.Offset = append(lines, more...), from.Offset+read
	}
	return lines, from, lost, nil
}

// readLines reads complete lines of a file. What is no entry is passed over.
func readLines(path, series string, offset int64, most int) (lines []Line, read int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, 0, err
	}
	r := bufio.NewReaderSize(f, 64<<10)
	for len(lines) < most {
		text, err := r.ReadBytes('\n')
		if err != nil { // the end, or a line that is being written
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return lines, read, err
		}
		read += int64(len(text))
		line := Line{Series: series, Text: bytes.TrimRight(text, "\n")}
		if json.Unmarshal(line.Text, &line.Entry) == nil && line.Number > 0 {
			lines = append(lines, line)
		}
	}
	return lines, read, nil
}

// Behind is how many bytes of a series are after a position.
func (l *Log) Behind(name string, from Position) (bytes int64) {
	s := l.series(name)
	paths, err := s.paths()
	if err != nil {
		return 0
	}
	for _, p := range paths {
		fi, err := os.Stat(p)
		switch base := filepath.Base(p); {
		case err != nil || base < from.File:
		case base == from.File:
			bytes += max(0, fi.Size()-from.Offset)
		default:
			bytes += fi.Size()
		}
	}
	return bytes
}

// Written receives something after lines were written, until stop is called.
func (l *Log) Written() (written <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.followers[c] = true
	return c, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.followers, c)
	}
}

// tell tells who follows the log that there is more.
func (l *Log) tell() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.followers {
		select {
		case c <- struct{}{}:
		default: // it has not looked yet
		}
	}
}
