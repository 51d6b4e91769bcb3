package hostdev

import (
	"fmt"
	"strings"
	"testing"

	"heddle/internal/test/testkit"
)

// pastText lists what sends past a switch on the device.
func pastText(h *Host, d Device) string {
	var got []string
	for _, p := range h.Past(d) {
		got = append(got, fmt.Sprintf("%s %s on %s in %q", p.Name, p.Driver, p.Lower, p.Master.Name))
	}
	return strings.Join(got, ", ")
}

// Devices that carry traffic of others are found on a device and on VLAN devices on it. The host's own VLAN devices are
// not reported, nor are devices on a device of another namespace that has the same index.
func TestWhatSendsPastASwitchIsToldFromTheHostsOwn(t *testing.T) {
	h := &Host{links: map[uint32]link{}}
	for _, l := range []link{
		{index: 1, name: "eno1"}, {index: 2, name: "eno2"}, {index: 3, name: "br0", kind: "bridge"},
		{index: 4, name: "blue", kind: "vrf"},
		{index: 5, name: "mv0", kind: "macvlan", peer: 1}, {index: 6, name: "own", kind: "vlan", peer: 1},
		{index: 7, name: "v10", kind: "vlan", peer: 1, master: 3}, {index: 8, name: "v20", kind: "vlan", peer: 1},
		{index: 9, name: "iv0", kind: "ipvlan", peer: 8}, {index: 10, name: "v30", kind: "vlan", peer: 1, master: 4},
		{index: 11, name: "pair", kind: "veth", peer: 1}, {index: 12, name: "far", kind: "macvlan", peer: 1, peerNS: 3},
	} {
		if l.peerNS == 0 {
			l.peerNS = localNS
		}
		h.links[l.index] = l
	}
	const want = `iv0 ipvlan on v20 in "", mv0 macvlan on eno1 in "", v10 vlan on eno1 in "br0"`
	if got := pastText(h, Device{Index: 1}); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := pastText(h, Device{Index: 2}); got != "" {
		t.Errorf("on a device with nothing on it: %s", got)
	}
}

func TestAMacvlanDeviceIsSeenOnItsDevice(t *testing.T) {
	ns := testkit.NS(t, "past")
	run(t, ns, "ip link add eno1 type veth peer name eno2")
	run(t, ns, "ip link add link eno1 name mv0 type macvlan mode bridge")
	h := openIn(t, ns)
	for device, want := range map[string]string{"eno1": `mv0 macvlan on eno1 in ""`, "eno2": ""} {
		t.Run(device, func(t *testing.T) {
			d, ok, err := h.Device(device)
			if got := pastText(h, d); err != nil || !ok || got != want {
				t.Errorf("%s: got %q, want %q; %v, %v", device, got, want, ok, err)
			}
		})
	}
	run(t, ns, "ip link del mv0")
	await(t, h, "eno1", "it is gone", func(d Device, ok bool) bool { return ok && pastText(h, d) == "" })
}
