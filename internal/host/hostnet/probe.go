package hostnet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

const ntfUse = 1 // NTF_USE: look up the neighbour as if something were sent to it

// Answers makes the kernel ask for a neighbour on a device, by an ARP request or a neighbour solicitation, and reports
// whether the neighbour has answered such a request there so far: a neighbour that is known for another reason does not
// count. It does not wait: call it again a little later.
func (Net) Answers(index uint32, ip netip.Addr) (bool, error) {
	all, err := dump(unix.RTM_GETNEIGH, neighbourDump{}, unix.RTM_NEWNEIGH)
	if err != nil {
		return false, fmt.Errorf("read the neighbours: %w", err)
	}
	for _, b := range all {
		if at, ok := netip.AddrFromSlice(attribute(b, neighbourHeader, unix.NDA_DST)); ok && at == ip &&
			neighbourIndex(b) == index && neighbourState(b)&unix.NUD_REACHABLE != 0 {
			return true, nil
		}
	}
	return false, look(index, ip)
}

type neighbourDump struct{}

func (neighbourDump) Len() int          { return neighbourHeader }
func (neighbourDump) Serialize() []byte { return make([]byte, neighbourHeader) }

func look(index uint32, ip netip.Addr) error {
	b := make([]byte, neighbourHeader)
	b[0] = unix.AF_INET
	if ip.Is6() {
		b[0] = unix.AF_INET6
	}
	binary.NativeEndian.PutUint32(b[4:], index)
	b[10] = ntfUse
	v := ip.AsSlice()
	return send(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE, appendAttribute(b, unix.NDA_DST, v), unix.EEXIST)
}

// ErrNoProbe means that there is no neighbour whose answer would show that the host is reachable.
var ErrNoProbe = errors.New("no default gateway goes by the device")

// Probes returns the neighbours whose answers show that the network is reachable: the given ones, else the default
// gateways. The error is ErrNoProbe if there are none.
func (c *Config) Probes(asked []netip.Addr) ([]netip.Addr, error) {
	from := asked
	if len(from) == 0 {
		from = c.Gateways
	}
	var out []netip.Addr
	for _, ip := range from {
		if !slices.Contains(c.Fixed, ip) {
			out = append(out, ip)
		}
	}
	if len(out) == 0 {
		return nil, ErrNoProbe
	}
	return out, nil
}
