package meter

import (
	"fmt"
	"math/bits"
	"unsafe"

	"golang.org/x/sys/unix"
)

// index finds entries by the hash of their key: open addressing with linear probing, at most half full. It is outside
// the Go heap and not part of the file: it is built from the entries. A cell is hash << 32 | number of the entry + 1,
// so that neither growing nor deleting reads an entry.
type index struct {
	mem   memory[uint64]
	mask  uint32
	count int
}

const (
	smallestIndex = 1 << 10
	// largePage is the size from which on an index uses large pages, and their size: its reads are random, and
	// large pages spare the processor address look-ups.
	largePage = 2 << 20
)

func newIndex(entries int) (index, error) {
	size := max(smallestIndex, 1<<bits.Len(uint(2*entries)))
	mem, err := newMemory[uint64](size)
	if len(mem.raw) >= largePage {
		_ = unix.Madvise(mem.raw, unix.MADV_HUGEPAGE) // if the kernel has none, small pages are used
	}
	return index{mem: mem, mask: uint32(size - 1)}, err
}

func cell(hash, i uint32) uint64 { return uint64(hash)<<32 | uint64(i+1) }

// put adds an entry that is not in the index; there must be space.
func (x *index) put(hash, i uint32) {
	p := hash & x.mask
	for x.mem.s[p] != 0 {
		p = (p + 1) & x.mask
	}
	x.mem.s[p] = cell(hash, i)
	x.count++
}

// remove takes out an entry that is in the index, and moves up the cells that collided with it.
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

// fit resizes the index for n entries if it is too small or far too large.
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

// memory is an array outside the Go heap, initially zero; parts that were never touched take no memory.
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
