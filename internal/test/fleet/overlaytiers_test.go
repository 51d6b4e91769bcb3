package fleet

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"heddle/internal/test/testkit/cable"
)

// twoTier is the configuration of a host that takes the second host and the third machine for one subnet.
func (r *overlayRig) twoTier(i int, second string) string {
	text := r.config(i, second)
	for _, a := range r.addr[1:3] {
		text = strings.ReplaceAll(text, fmt.Sprintf("address: %q}", a),
			fmt.Sprintf("address: %q, subnet: 10.9.2.0/23}", a))
	}
	text = strings.Replace(text, fmt.Sprintf("endpoints: [{address: %q, subnet: 10.9.2.0/23}]", r.addr[i]),
		fmt.Sprintf("endpoints: [{address: %q}]", r.addr[i]), 1)
	return strings.Replace(text, "  tunnel:\n", "  tunnel:\n    replication: two-tier\n", 1)
}

// TestS84_AProxyRepeatsIntoItsOwnSubnet: a broadcast crosses to another subnet once; the host that gets it there gives
// it to the others of its subnet, once, and neither back nor on; what is for one station is not repeated.
func TestS84_AProxyRepeatsIntoItsOwnSubnet(t *testing.T) {
	t.Parallel()
	r := newOverlayRig(t, false, "other")
	for i, h := range r.hosts {
		h.Configure(r.twoTier(i, "other"))
	}
	copies := func(from, to string, frames [][]byte, text string) (n int) {
		outer := slices.Concat(netip.MustParseAddr(from).AsSlice(), netip.MustParseAddr(to).AsSlice())
		for _, f := range frames {
			if bytes.Contains(f, outer) && bytes.Contains(f, []byte(text)) {
				n++
			}
		}
		return n
	}
	r.once(cable.MAC(1), "first, so that all are ready")
	r.wire.Forget()
	r.once(cable.MAC(1), "by a proxy")
	last := cable.Frame(cable.Broadcast(), cable.MAC(1), 0, "and the last")
	r.guests[0][0].Send(last)
	for _, e := range []*cable.End{r.guests[1][0], r.kernel} {
		for _, f := range e.Until(last) {
			t.Errorf("S84: more came than one copy: %x", f)
		}
	}
	seen := r.wire.Gather("the last frame", func(all [][]byte) bool {
		return strings.Contains(string(all[len(all)-1]), "and the last")
	})
	if n, far := copies(r.addr[0], r.addr[1], seen, "by a proxy"), copies(r.addr[0], r.addr[2], seen,
		"by a proxy"); n != 1 || far != 0 {
		t.Errorf("S84: the sender's cable carried %d copies to the proxy, %d to the other host of its subnet", n, far)
	}
	r.guests[0][0].Refuse(last, "S84: its own frame came back")
	outside := cable.Frame(cable.Broadcast(), cable.MAC(77), 0, "from the kernel's device")
	r.kernel.Send(outside)
	r.guests[0][0].Expect(outside, "from the other subnet")
	r.guests[1][0].Expect(outside, "from the own subnet")
	one := cable.Frame(cable.MAC(88), cable.MAC(1), 0, "for a station of unknown place")
	r.guests[0][0].Send(one)
	r.kernel.Expect(one, "each host gets what is for an unknown station")
	r.guests[0][0].Send(last)
	if before := r.kernel.Until(last); len(before) != 0 {
		t.Errorf("S84: a proxy repeated what is for one station: %x", before)
	}
	for i, h := range r.hosts {
		for _, name := range []string{"tunnel-mtu", "device-refused", "tunnel-no-endpoint"} {
			if n := h.Refused("tunnel", name); n != 0 {
				t.Errorf("host %d: %d × %s", i, n, name)
			}
		}
	}
}
