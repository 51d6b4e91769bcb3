package meter

import (
	"fmt"
	"math/bits"
	"unsafe"

	"golang.org/x/sys/unix"
)

// index finds entries by the hash of their key: open addressing with linear probing, at most half full. It is outside
// the Go heap and is not part of the file: it is made anew from the entries. A cell is hash << 32 | number of the entry
// + 1, so that neither growing nor deleting touches an entry.
type index struct {
	mem   memory[uint64]
	mask  uint32
	count int
}

const (
	smallestIndex = 1 << 10
	// largePage is from what size on an index asks for pages of that size: it is read at random all over, and the
	// processor then knows where its pages are.
	largePage = 2 << 20
)

func newIndex(entries int) (index, error) {
	size := max(smallestIndex, 1<<bits.Len(uint(2*entries)))
	mem, err := newMemory[uint64](size)
	if len(mem.raw) >= largePage {
		_ = unix.Madvise(mem.raw, unix.MADV_HUGEPAGE) // where the kernel has none, small pages do
	}
	return index{mem: mem, mask: uint32(size - 1)}, err
}

func cell(hash, i uint32) uint64 { return uint64(hash)<<32 | uint64(i+1) }

// put adds an entry that is not there; there must be room.
func (x *index) put(hash, i uint32) {
	p := hash & x.mask
	for x.mem.s[p] != 0 {
		p = (p + 1) & x.mask
	}
	x.mem.s[p] = cell(hash, i)
	x.count++
}

// remove takes out an entry that is there, and moves up what was put behind it.
func (x *index) remove(hash, i uint32) {
	p := hash & x.mask
	for x.mem.s[p] != cell(hash, i) {
		p = (p + 1) & x.mask
	}
	for q := p; ; {
		q = (q + 1) & x.mask
		c := x.mem.s[q]
		if c == 0 {
			break
		}
		home := uint32(c>>32) & x.mask
		if (q-home)&x.mask >= (q-p)&x.mask {
			x.mem.s[p], p = c, q
		}
	}
	x.mem.s[p] = 0
	x.count--
}

// fit makes the index as large as n entries need, if it is too small or far too large.
func (x *index) fit(n int) error {
	size := len(x.mem.s)
	if 2*n <= size && (size == smallestIndex || 32*n > size) {
		return nil
	}
	y, err := newIndex(n)
	if err != nil {
		return err
	}
	for _, c := range x.mem.s {
		if c != 0 {
			y.put(uint32(c>>32), uint32(c)-1)
		}
	}
	x.mem.release()
	*x = y
	return nil
}

// memory is an array outside the Go heap, zero at first; what was never touched costs nothing.
type memory[T uint64 | tick] struct {
	raw []byte
	s   []T
}

func newMemory[T uint64 | tick](n int) (memory[T], error) {
	var t T
	raw, err := unix.Mmap(-1, 0, n*int(unsafe.Sizeof(t)), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return memory[T]{}, fmt.Errorf("get %d MB of memory for the flow table: %w", n*int(unsafe.Sizeof(t))>>20, err)
	}
	return memory[T]{raw: raw, s: unsafe.Slice((*T)(unsafe.Pointer(&raw[0])), n)}, nil
}

func (m *memory[T]) release() {
	if m.raw != nil {
		_ = unix.Munmap(m.raw)
	}
	*m = memory[T]{}
}
