package meter

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"heddle/internal/host/ownfile"
)

// file is the memory of a flow table: a sparse file that is mapped as a whole and takes space only where entries are in
// use. The successor of a killed agent finds its writes there.
type file struct {
	f       *os.File
	mem     []byte
	header  *header
	entries []entry
}

// header is the beginning of the file. sum covers everything before it, which is written once.
type header struct {
	magic   [8]byte
	version uint32
	size    uint32 // of an entry
	origin  [16]byte
	sum     uint32
	_       uint32
	// highest is the number of the latest batch that was begun.
	highest atomic.Uint64
}

const (
	magic         = "HEDFLOWS"
	layoutVersion = 1
	headerRoom    = 4096
	// chunkEntries is for how many entries space in the file is allocated together: 1 MB.
	chunkEntries = 4096
)

var errUnusable = errors.New("not a flow table of this version")

// originSum is a hash of the name of the kernel's tables, for the header.
func originSum(origin string) [16]byte {
	s := sha256.Sum256([]byte(origin))
	return [16]byte(s[:16])
}

func (h *header) checksum() uint32 {
	return crc32.ChecksumIEEE(unsafe.Slice((*byte)(unsafe.Pointer(h)), unsafe.Offsetof(h.sum)))
}

func (h *header) write(origin [16]byte) {
	h.magic, h.version, h.size, h.origin = [8]byte([]byte(magic)), layoutVersion, entrySize, origin
	h.sum = h.checksum()
}

func (h *header) valid() bool {
	return string(h.magic[:]) == magic && h.version == layoutVersion && h.size == entrySize && h.sum == h.checksum()
}

// createFile makes an empty table for at least n entries. The file gets its name when it is complete, and never
// replaces another.
func createFile(path string, n int, origin [16]byte) (*file, error) {
	temporary := path + ".new"
	f, err := ownfile.Create(temporary)
	if err != nil {
		return nil, fmt.Errorf("make the flow table: %w", err)
	}
	t, err := mapFile(f, n)
	if err == nil {
		if err = t.reserve(0, headerRoom); err == nil {
			t.header.write(origin)
			err = unix.Renameat2(unix.AT_FDCWD, temporary, unix.AT_FDCWD, path, unix.RENAME_NOREPLACE)
		}
	}
	if err != nil {
		_ = os.Remove(temporary)
		if t != nil {
			t.close()
		} else {
			_ = f.Close()
		}
		return nil, fmt.Errorf("make the flow table %s: %w", path, err)
	}
	return t, nil
}

// openFile maps an existing table for at least n entries. The error wraps errUnusable if it can't be read as one.
func openFile(path string, n int) (*file, error) {
	f, err := ownfile.Open(path, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	t, err := existing(f, n)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

func existing(f *os.File, n int) (*file, error) {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, fmt.Errorf("another agent has the flow table open: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	room := info.Size() - headerRoom
	if room < 0 || room%(chunkEntries*entrySize) != 0 {
		return nil, fmt.Errorf("%w: its length is %d", errUnusable, info.Size())
	}
	t, err := mapFile(f, max(n, int(room/entrySize)))
	if err != nil {
		return nil, err
	}
	if !t.header.valid() {
		_ = unix.Munmap(t.mem)
		return nil, fmt.Errorf("%w: its header does not match", errUnusable)
	}
	return t, nil
}

// mapFile makes the file as long as n entries need and maps it.
func mapFile(f *os.File, n int) (*file, error) {
	chunks := (n + chunkEntries - 1) / chunkEntries
	length := headerRoom + chunks*chunkEntries*entrySize
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, fmt.Errorf("another agent has it open: %w", err)
	}
	if err := f.Truncate(int64(length)); err != nil {
		return nil, err
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map it: %w", err)
	}
	return &file{f: f, mem: mem, header: (*header)(unsafe.Pointer(&mem[0])),
		entries: unsafe.Slice((*entry)(unsafe.Pointer(&mem[headerRoom])), chunks*chunkEntries)}, nil
}

// reserve makes the file system allocate the space: without space on the disk, a write to the mapping would kill the
// process.
func (t *file) reserve(offset, length int64) error {
	err := unix.Fallocate(int(t.f.Fd()), 0, offset, length)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get %d kB of room: %w", length>>10, err)
	}
	return nil
}

func chunkAt(chunk int) (offset, length int64) {
	return headerRoom + int64(chunk)*chunkEntries*entrySize, chunkEntries * entrySize
}

// reserveChunk allocates space for a chunk of entries; they are free.
func (t *file) reserveChunk(chunk int) error { return t.reserve(chunkAt(chunk)) }

// freeChunk frees the space of a chunk, all of whose entries are free.
func (t *file) freeChunk(chunk int) error {
	offset, length := chunkAt(chunk)
	return unix.Fallocate(int(t.f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offset, length)
}

// written calls f with each chunk that may contain entries. It does not read holes, because that would fill them.
func (t *file) written(f func(chunk int) error) error {
	for at := int64(headerRoom); ; {
		data, err := unix.Seek(int(t.f.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look for what is in the flow table: %w", err)
		}
		chunk := int((data - headerRoom) / (chunkEntries * entrySize))
		if err := f(chunk); err != nil {
			return err
		}
		at, _ = chunkAt(chunk + 1)
	}
}

func (t *file) close() {
	_ = unix.Munmap(t.mem)
	_ = t.f.Close()
	*t = file{}
}
