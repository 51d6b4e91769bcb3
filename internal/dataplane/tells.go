package dataplane

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"heddle/internal/abi"
	"heddle/internal/dataplane/compile"
	"heddle/internal/plan"
)

// Tells is the stream of the program's reports: learned and moved MACs, limits reached, refusals of guests' frames. It
// is a buffer in the kernel, which fills up while nobody reads; the next report says in Untold how many did not fit.
type Tells struct{ ring *ringbuf.Reader }

// Tell is one record of the stream.
type Tell struct {
	abi.Tell
	// Probe is the payload of a received probe (abi.TellProbe).
	Probe []byte
	// Claim is the address that a guard refused; it is not valid if it can't be read, and in all other reports.
	Claim netip.Addr
}

// maxTells bounds the number of reports in a batch.
const maxTells = 256

// OpenTells opens the stream, for one reader at a time.
func (k *Kernel) OpenTells() (*Tells, error) {
	r, err := ringbuf.NewReader(k.objects.Tells)
	if err != nil {
		return nil, fmt.Errorf("follow what the switch program tells: %w", err)
	}
	return &Tells{r}, nil
}

// Close also ends a waiting Next.
func (t *Tells) Close() error { return t.ring.Close() }

// Next waits for the next report and returns it together with those that are already there. After Close the error is
// os.ErrClosed.
func (t *Tells) Next() ([]Tell, error) {
	var batch []Tell
	for len(batch) == 0 || len(batch) < maxTells && t.ring.AvailableBytes() > 0 {
		r, err := t.ring.Read()
		if errors.Is(err, ringbuf.ErrClosed) {
			return nil, os.ErrClosed
		}
		if err != nil {
			return nil, fmt.Errorf("read what the switch program tells: %w", err)
		}
		if len(r.RawSample) < int(unsafe.Sizeof(abi.Tell{})) {
			continue // from another version of the program, which is being replaced
		}
		told := Tell{Tell: *(*abi.Tell)(unsafe.Pointer(&r.RawSample[0]))}
		if told.Kind == abi.TellProbe {
			told.Probe = bytes.Clone(r.RawSample[unsafe.Sizeof(abi.Tell{}):])
		}
		if told.Kind == abi.TellRefused && len(r.RawSample) >= int(unsafe.Sizeof(abi.ToldClaim{})) {
			claim := (*abi.ToldClaim)(unsafe.Pointer(&r.RawSample[0]))
			told.Claim, _ = netip.AddrFromSlice(claim.Address[:min(int(claim.Length), len(claim.Address))])
		}
		batch = append(batch, told)
	}
	return batch, nil
}

// Told is one report, with the present names of ports and switches.
type Told struct {
	At   time.Time
	Kind uint32 // abi.TellLearned and so on
	Port plan.PortID
	// Was is the port that had a moved MAC, or the uplink by which one of abi.TellOutside came; zero if it is gone.
	Was    plan.PortID
	Reason abi.Reason // of abi.TellRefused
	Claim  netip.Addr // for abi.TellRefused by a guard: the sender's address according to the frame
	Wait   uint32     // for abi.TellAwake: the number of the wait that has ended
	VNI    uint32     // of an overlay segment, in which the VLAN then is; 0 = none
	VLAN   uint16     // for a learned or moved MAC, and a sign; 0 = untagged segment. For a probe the VLAN of its tag
	AD     bool
	Sign   uint32 // of abi.TellSign
	Probe  []byte // of abi.TellProbe
	MAC    plan.MAC
	Untold int // reports about this port that were lost before this one
}

// named looks up the few ports that the reports are about; a host may have a thousand ports.
func named(s *compile.Slots, batch []Tell) map[uint32]plan.PortID {
	told := make(map[uint32]bool, 2*len(batch))
	for _, t := range batch {
		told[t.Slot] = true
		told[t.Other] = true // for a move, and a MAC outside, this is a slot
	}
	ids := make(map[uint32]plan.PortID, len(told))
	for id, slot := range s.Ports {
		if told[slot] {
			ids[slot] = id
		}
	}
	return ids
}

// Name adds names to the reports; it leaves out reports about ports that are gone.
func (k *Kernel) Name(batch []Tell) []Told {
	ids := named(k.slots, batch)
	var mono unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono); err != nil {
		return nil // it never fails
	}
	now, decode := time.Now(), k.slots.Decode()
	var out []Told
	for _, t := range batch {
		id, ok := ids[t.Slot]
		if !ok {
			continue
		}
		told := Told{
			At: now.Add(-time.Duration(mono.Nano() - int64(t.At))), Kind: t.Kind, Port: id, MAC: t.MAC,
			Untold: int(t.Untold),
		}
		told.VNI, told.VLAN, told.AD = decode(t.Segment)
		switch t.Kind {
		case abi.TellMoved, abi.TellOutside:
			told.Was = ids[t.Other]
		case abi.TellRefused, abi.TellLimit:
			told.Reason, told.Claim = abi.Reason(t.Other), t.Claim
		case abi.TellSign:
			told.Sign = t.Other
		case abi.TellProbe:
			told.Probe = t.Probe
		case abi.TellAwake:
			told.Wait = t.Other
		}
		out = append(out, told)
	}
	return out
}
