package hostdev

import (
	"errors"
	"fmt"
	"sync"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"
)

// Ability is which offloads a device has, and how many queues.
type Ability struct {
	// Segments and Checksums: the device accepts TCP packets that are segmented later, and frames whose checksum is
	// computed later. For a tap: its guest does.
	Segments, Checksums bool
	// Queues is the number of receive queues that the device uses, MaxQueues the number that it could use. 0: it does
	// not report it.
	Queues, MaxQueues int
}

// AbilityReader asks the kernel about the devices of one network namespace: the one of the thread that calls
// OpenAbilities. Any goroutine may use it.
type AbilityReader struct {
	mu  sync.Mutex
	eth *ethtool.Ethtool // nil after Close
}

// OpenAbilities makes a reader with a socket of its own.
func OpenAbilities() (*AbilityReader, error) {
	eth, err := openEthtool()
	if err != nil {
		return nil, err
	}
	return &AbilityReader{eth: eth}, nil
}

// Close ends the reader; it knows no device after that.
func (r *AbilityReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.eth != nil {
		r.eth.Close()
		r.eth = nil
	}
	return nil
}

// The names of the kernel's features.
const (
	featureSegments  = "tx-tcp-segmentation"
	featureChecksums = "tx-checksum-ip-generic"
)

// Of returns the abilities of a device; known is false if it is gone or reports none.
func (r *AbilityReader) Of(device string) (a Ability, known bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.eth == nil {
		return a, false, nil
	}
	features, err := r.eth.Features(device)
	switch {
	case errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EOPNOTSUPP):
		return a, false, nil
	case err != nil:
		return a, false, fmt.Errorf("read the offloads of device %s: %w", device, err)
	}
	a.Segments, a.Checksums = features[featureSegments], features[featureChecksums]
	if c, err := r.eth.GetChannels(device); err == nil {
		a.Queues, a.MaxQueues = int(c.RxCount+c.CombinedCount), int(c.MaxRx+c.MaxCombined)
	}
	return a, true, nil
}
