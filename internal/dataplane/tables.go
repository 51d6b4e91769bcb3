package dataplane

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/dataplane/compile"
)

// planTables are the memory-mapped tables with two halves.
type planTables struct {
	maps  *vswitchMaps
	grace *grace
	// reading: runs of the program may still read the idle half.
	reading bool
	// over gives the result of a wait beside the caller that began after the last flip; nil where there is none.
	over  chan error
	waits sync.WaitGroup // of such waits
}

func newPlanTables(m *vswitchMaps) *planTables {
	return &planTables{maps: m, grace: newGrace(m)}
}

func (t *planTables) close() error {
	if t == nil {
		return nil
	}
	t.waits.Wait()
	return t.grace.close()
}

func (t *planTables) inForce() (abi.Control, error) {
	var c abi.Control
	if err := t.maps.Control.Lookup(uint32(0), &c); err != nil {
		return c, fmt.Errorf("read generation: %w", err)
	}
	return c, nil
}

// write fills the idle half with the image and returns the control record that activates it.
func (t *planTables) write(img *compile.Image) (abi.Control, error) {
	if t.reading {
		if err := t.awaitIdle(); err != nil {
			return abi.Control{}, err
		}
	}
	c, err := t.inForce()
	if err != nil {
		return c, err
	}
	c.Generation++
	half := int64(c.Generation & 1)
	c.OwnerSeed[half] = img.OwnerSeed
	const perSwitch = abi.SegmentsPerSwitch / abi.Chunk
	errs := []error{
		putMapped(t.maps.Ports, img.Ports, half*abi.MaxPorts),
		putMapped(t.maps.VlanSets, img.VLANSets, half*abi.MaxVLANSets),
		putMapped(t.maps.Teams, img.Teams, half*abi.MaxTeams),
		putMapped(t.maps.Groups, img.Groups, half*abi.MaxGroups),
		putMapped(t.maps.Members, img.Members, half*abi.MaxMemberChunks),
		putMapped(t.maps.Owners, img.Owners, half*abi.OwnerBuckets),
		putMapped(t.maps.GuardAddresses, img.GuardAddresses, half*abi.MaxGuardAddresses),
	}
	for id, chunks := range img.Segments {
		errs = append(errs, putMapped(t.maps.Segments, chunks, half*abi.MaxSwitches*perSwitch+int64(id)*perSwitch))
	}
	return c, errors.Join(errs...)
}

// flip activates what was written, for all ports at one instant. It is a system call, so that on every architecture the
// program sees what was written before through the memory maps.
func (t *planTables) flip(next abi.Control) (at Instant, err error) {
	if at.Before, err = Monotonic(); err != nil {
		return Instant{}, err
	}
	t.reading, t.over = true, nil
	if err := t.maps.Control.Put(uint32(0), &next); err != nil {
		return Instant{}, fmt.Errorf("activate generation %d: %w", next.Generation, err)
	}
	at.After, err = Monotonic()
	return at, err
}

// awaitGrace returns when no run of the program that began before the call is still executing (K9).
func (t *planTables) awaitGrace() error {
	if err := t.grace.await(); err != nil {
		return err
	}
	t.reading = false
	return nil
}

// beginGrace has the grace period after a flip begin now, beside the caller: the next write mostly finds it over.
func (t *planTables) beginGrace() {
	over := make(chan error, 1)
	t.over = over
	t.waits.Go(func() { over <- t.grace.await() })
}

// awaitIdle returns when no run of the program reads the idle half.
func (t *planTables) awaitIdle() error {
	if t.over != nil {
		err := <-t.over
		t.over = nil
		if err == nil {
			t.reading = false
			return nil
		}
	}
	return t.awaitGrace()
}

// put writes records at an index of a table.
func put[T any](m *ebpf.Memory, records []T, index int64) error {
	if len(records) == 0 {
		return nil
	}
	size := int64(unsafe.Sizeof(records[0]))
	_, err := m.WriteAt(bytesOf(records), index*size)
	return err
}

// bytesOf returns records of generated types, which have no padding, as their bytes.
func bytesOf[T any](records []T) []byte {
	if len(records) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&records[0])), uintptr(len(records))*unsafe.Sizeof(records[0]))
}
