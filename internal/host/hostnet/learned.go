package hostnet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// CarryNeighbours copies learned neighbours from one device to another, so that nothing must wait for an answer: while
// both devices have the same MAC, an answer reaches only one of them. The kernel asks at once, on the new device, for
// those that are in use: although they were known, they may not answer there.
func (Net) CarryNeighbours(from, to uint32) error {
	all, err := dump(unix.RTM_GETNEIGH, neighbourDump{}, unix.RTM_NEWNEIGH)
	if err != nil {
		return fmt.Errorf("read the neighbours: %w", err)
	}
	var errs []error
	for _, b := range all {
		body, ok := learnedFor(b, from, to)
		if !ok {
			continue
		}
		if err := send(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, body); err != nil {
			errs = append(errs, fmt.Errorf("carry a neighbour over: %w", err))
		}
	}
	return errors.Join(errs...)
}

// learnedFor converts a learned neighbour of one device to one of the other.
func learnedFor(b []byte, from, to uint32) ([]byte, bool) {
	const inUse = unix.NUD_REACHABLE | unix.NUD_DELAY | unix.NUD_PROBE
	const learned = inUse | unix.NUD_STALE
	if len(b) < neighbourHeader || neighbourIndex(b) != from || neighbourState(b)&learned == 0 ||
		b[0] != unix.AF_INET && b[0] != unix.AF_INET6 {
		return nil, false
	}
	ip, ok := netip.AddrFromSlice(attribute(b, neighbourHeader, unix.NDA_DST))
	if !ok || attribute(b, neighbourHeader, unix.NDA_LLADDR) == nil {
		return nil, false
	}
	out := slices.Clone(neighbourFor(b, to))
	state := uint16(unix.NUD_STALE)
	if neighbourState(b)&inUse != 0 {
		state = unix.NUD_PROBE
	}
	binary.NativeEndian.PutUint16(out[8:], state)
	return out, ip.IsValid()
}
