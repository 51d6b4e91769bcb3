package multiqueue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"unsafe"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"
)

// Counts are the frames of one pair of queues since it was opened. What was refused the receiving tap did not take.
// Each pair's are in a cache line of their own.
type Counts struct {
	ToVM, FromVM               uint64
	RefusedToVM, RefusedFromVM uint64
	_                          [4]uint64
}

// countsSize is the size of a pair's counts in the file, in bytes.
const countsSize = int(unsafe.Sizeof(Counts{}))

// createCounts maps a new file, so that a thread counts without a system call and others read what it has counted.
func createCounts(path string, queues int) (all []Counts, unmap func(), err error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	size := queues * countsSize
	if err := f.Truncate(int64(size)); err != nil {
		return nil, nil, err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("map %s: %w", path, err)
	}
	return unsafe.Slice((*Counts)(unsafe.Pointer(&b[0])), queues), func() { _ = unix.Munmap(b) }, nil
}

// ReadCounts reads the file of Carry, by queue.
func ReadCounts(path string) (all []Counts, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	word := binary.NativeEndian.Uint64
	for ; len(b) >= countsSize; b = b[countsSize:] {
		all = append(all, Counts{ToVM: word(b), FromVM: word(b[8:]), RefusedToVM: word(b[16:]),
			RefusedFromVM: word(b[24:])})
	}
	return all, nil
}

// CountsOf are what the driver of an adapter in a guest counts by queue, such as virtio-net's. Frames that it received
// are ToVM. A driver that counts by adapter alone is an error.
func CountsOf(device string) ([]Counts, error) {
	tool, err := ethtool.NewEthtool()
	if err != nil {
		return nil, fmt.Errorf("open a socket for device settings: %w", err)
	}
	defer tool.Close()
	stats, err := tool.Stats(device)
	if err != nil {
		return nil, fmt.Errorf("read what the driver of %s counts: %w", device, err)
	}
	all, err := byQueue(stats)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", device, err)
	}
	return all, nil
}

// queuePackets is what virtio-net calls its counters: rx_queue_0_packets, and rx0_packets since Linux 6.10.
var queuePackets = regexp.MustCompile(`^(rx|tx)(?:_queue_)?(\d+)_packets$`)

func byQueue(stats map[string]uint64) (all []Counts, err error) {
	for name, n := range stats {
		m := queuePackets.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		i, err := strconv.Atoi(m[2])
		if err != nil {
			return nil, err
		}
		all = slices.Grow(all, max(0, i+1-len(all)))
		all = all[:max(len(all), i+1)]
		if m[1] == "rx" {
			all[i].ToVM = n
		} else {
			all[i].FromVM = n
		}
	}
	if len(all) == 0 {
		return nil, errors.New("its driver counts nothing by queue")
	}
	return all, nil
}
