package image

import (
	"fmt"
	"io"
	"os"
	"path"
	"sort"
	"strings"
)

// Archive collects files for an initramfs. WriteTo writes them as a cpio archive in the "newc" format that the kernel
// unpacks (Documentation/driver-api/early-userspace/buffer-format.rst). Directories above a file need not be added.
type Archive struct{ entries map[string]entry }

// entry is one member: its mode with the file type bits, and either its bytes, or the file of this machine that
// contains them.
type entry struct {
	mode  uint32
	data  []byte
	host  string
	major uint32
	minor uint32
}

const (
	typeDir  = 0o040000
	typeFile = 0o100000
	typeLink = 0o120000
	typeChar = 0o020000
)

// Dir adds an empty directory.
func (a *Archive) Dir(name string) { a.add(name, entry{mode: typeDir | 0o755}) }

// File adds a file with the permission bits perm.
func (a *Archive) File(name string, perm os.FileMode, data []byte) {
	a.add(name, entry{mode: typeFile | uint32(perm.Perm()), data: data})
}

// HostFile adds a copy of a file of this machine, with its permission bits; it is read when the archive is written.
func (a *Archive) HostFile(name, host string) error {
	info, err := os.Stat(host)
	if err != nil {
		return fmt.Errorf("file for the guest: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("file for the guest: %s is not a regular file", host)
	}
	a.add(name, entry{mode: typeFile | uint32(info.Mode().Perm()), host: host})
	return nil
}

// Symlink adds a symbolic link to target.
func (a *Archive) Symlink(name, target string) {
	a.add(name, entry{mode: typeLink | 0o777, data: []byte(target)})
}

// charDevice adds a character device node.
func (a *Archive) charDevice(name string, major, minor uint32) {
	a.add(name, entry{mode: typeChar | 0o600, major: major, minor: minor})
}

// add files the entry under its cleaned name and makes sure that the directories above it exist.
func (a *Archive) add(name string, e entry) {
	if a.entries == nil {
		a.entries = map[string]entry{}
	}
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, ok := a.entries[dir]; !ok {
			a.entries[dir] = entry{mode: typeDir | 0o755}
		}
	}
	a.entries[name] = e
}

// WriteTo writes the archive, directories before what they contain, and pads it to a multiple of 512 bytes. The same
// entries always give the same bytes.
func (a *Archive) WriteTo(w io.Writer) (int64, error) {
	c := &countingWriter{w: w}
	names := make([]string, 0, len(a.entries))
	for name := range a.entries {
		names = append(names, name)
	}
	sort.Strings(names)
	for i, name := range names {
		if err := c.member(name, a.entries[name], uint32(i+1)); err != nil {
			return c.n, err
		}
	}
	if err := c.member("TRAILER!!!", entry{}, 0); err != nil {
		return c.n, err
	}
	return c.n, c.pad(512)
}

// countingWriter knows how far it has written, for the padding that the format wants.
type countingWriter struct {
	w io.Writer
	n int64
}

// Write implements io.Writer.
func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// pad fills up with zeros to a multiple of align.
func (c *countingWriter) pad(align int64) error {
	if rest := c.n % align; rest != 0 {
		_, err := c.Write(make([]byte, align-rest))
		return err
	}
	return nil
}

// member writes header, name and content. All numbers are eight hexadecimal digits; header with name, and content, each
// end on a multiple of four.
func (c *countingWriter) member(name string, e entry, inode uint32) error {
	content, size, err := e.open()
	if err != nil {
		return err
	}
	defer content.Close()
	if size > 1<<32-1 {
		return fmt.Errorf("%s is too large for an initramfs: %d bytes", name, size)
	}
	// inode, mode, uid, gid, links, mtime, size, device of the file system (2), device of a node (2), length of name,
	// check
	fields := []uint32{inode, e.mode, 0, 0, 1, 0, uint32(size), 0, 0, e.major, e.minor, uint32(len(name) + 1), 0}
	header := "070701"
	for _, f := range fields {
		header += fmt.Sprintf("%08X", f)
	}
	if _, err := io.WriteString(c, header+name+"\x00"); err != nil {
		return err
	}
	if err := c.pad(4); err != nil {
		return err
	}
	if n, err := io.CopyN(c, content, size); err != nil {
		return fmt.Errorf("%s: %d of %d bytes: %w", name, n, size, err)
	}
	return c.pad(4)
}

// open returns the content of the entry and its length in bytes.
func (e entry) open() (io.ReadCloser, int64, error) {
	if e.host == "" {
		return io.NopCloser(strings.NewReader(string(e.data))), int64(len(e.data)), nil
	}
	f, err := os.Open(e.host)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}
