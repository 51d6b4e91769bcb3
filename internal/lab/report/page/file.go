package page

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"heddle/internal/lab/report"
)

// File is the file to which a report will be written. It is checked before anything is measured: a wrong path must not
// cost a measurement.
type File struct{ path string }

// Check returns an error unless a report can be written at the path. It tries this with a temporary file in the same
// directory. An existing file must be one that a report can replace, and not a directory or a device.
func Check(path string) (*File, error) {
	if path == "" {
		return nil, errors.New("report: the name of the file is empty; write one such as report.html")
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved // the link stays, and its target is replaced
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("report: %w", err)
	case info.IsDir():
		return nil, fmt.Errorf("report: %s is a directory; name a file in it, such as %s", path,
			filepath.Join(path, "report.html"))
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("report: %s is no ordinary file, and would be replaced by one; name another", path)
	}
	f := &File{path: path}
	beside, err := f.create()
	if err != nil {
		return nil, err
	}
	return f, errors.Join(beside.Close(), os.Remove(beside.Name()))
}

// create makes an empty temporary file in the same directory, with the permissions of new files.
func (f *File) create() (*os.File, error) {
	dir, name := filepath.Split(f.path)
	file, err := os.OpenFile(fmt.Sprintf("%s.%s.%d", dir, name, os.Getpid()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, fmt.Errorf("report: %s cannot be written: %w", f.path, reason(err))
	}
	return file, nil
}

// reason returns the system's part of an error, without the name of the temporary file.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Write writes the page to a temporary file and renames it: a reader sees the old file or the new one.
func (f *File) Write(r *report.Report, command string) (err error) {
	var text bytes.Buffer
	if err := Write(&text, r, command); err != nil {
		return err
	}
	file, err := f.create()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("report: %s: %w", f.path, err), os.Remove(file.Name()))
		}
	}()
	if _, err := file.Write(text.Bytes()); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), f.path)
}
