package dataplane

import (
	"fmt"
	"os"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// writeAt and readAt copy bytes to and from the memory of a table that programs may map. They map only what they copy,
// and unmap it afterwards: the plan tables take 8 MB, which an idle agent should not use, and which no stray write of
// its own should reach.

func writeAt(table *ebpf.Map, b []byte, at int64) error {
	return mapped(table, at, len(b), unix.PROT_READ|unix.PROT_WRITE, func(memory []byte) { copy(memory, b) })
}

func readAt(table *ebpf.Map, b []byte, at int64) error {
	return mapped(table, at, len(b), unix.PROT_READ, func(memory []byte) { copy(b, memory) })
}

// putMapped writes records into a table's memory, from that index on.
func putMapped[T any](table *ebpf.Map, records []T, index int64) error {
	return writeAt(table, bytesOf(records), index*int64(unsafe.Sizeof(*new(T))))
}

// mapped maps size bytes of a table while use runs. Records follow one another without gaps: all are multiples of eight
// bytes long.
func mapped(table *ebpf.Map, at int64, size, protection int, use func([]byte)) error {
	if size == 0 {
		return nil
	}
	if end := int64(table.MaxEntries()) * int64(table.ValueSize()); at < 0 || at+int64(size) > end {
		return fmt.Errorf("table %s has %d bytes: %d at %d are beyond them", table, end, size, at)
	}
	skip := at % int64(os.Getpagesize())
	b, err := unix.Mmap(table.FD(), at-skip, int(skip)+size, protection, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map table %s: %w", table, err)
	}
	use(b[skip:])
	if err := unix.Munmap(b); err != nil {
		return fmt.Errorf("unmap table %s: %w", table, err)
	}
	return nil
}
