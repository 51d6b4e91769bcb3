package trace

import (
	"encoding/hex"
	"errors"
	"heddle/internal/diagnose"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

var fillConfig = config("uplinks: [{name: u1, device: p1}]",
	"{name: web, vlan: {access: 10}}\n{name: trunk, vlan: {trunk: [\"0\", \"10-20\"]}}\n{name: mgmt, vlan: {access: "+
		"10}}",
	"vm1 web", "vm2 web", "vm3 trunk", `vmk4 mgmt role: host, addresses: ["198.51.100.4/24", "2001:db8:1::4/64"]`)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// Missing fields are filled in as the sender would; what nobody can know is reported.
func TestAFrameIsFilledInAsTheSenderWould(t *testing.T) {
	for name, x := range map[string]struct {
		from, to string
		fields   diagnose.Fields
		want     string // Describe
		length   int
		assumed  string // part of what is said; "" = nothing
	}{
		"TCP to a port": {"vm1", "vm2",
			diagnose.Fields{IP: &diagnose.Addresses{Src: addr("192.0.2.1"), Dst: addr("192.0.2.2")},
				TCP: &diagnose.Ports{Dst: 443}}, "02:00:00:00:00:01 → 02:00:00:00:00:02, IPv4 192.0.2.1 → 192.0.2.2, " +
				"TCP 49152 → 443", 60, ""},
		"UDP over IPv6": {"vm1", "vm2",
			diagnose.Fields{IP: &diagnose.Addresses{Src: addr("2001:db8::1"), Dst: addr("2001:db8::2")},
				UDP: &diagnose.Ports{Src: 53, Dst: 53}},
			"02:00:00:00:00:01 → 02:00:00:00:00:02, IPv6 2001:db8::1 → 2001:db8::2, UDP 53 → 53", 62, ""},
		"ping of full length": {"vm1", "vm2",
			diagnose.Fields{IP: &diagnose.Addresses{Src: addr("192.0.2.1"), Dst: addr("192.0.2.2")}, Length: 1514},
			"02:00:00:00:00:01 → 02:00:00:00:00:02, IPv4 192.0.2.1 → 192.0.2.2, ping", 1514, ""},
		"an address nobody knows": {"vm1", "",
			diagnose.Fields{IP: &diagnose.Addresses{Src: addr("192.0.2.1"), Dst: addr("192.0.2.9")},
				TCP: &diagnose.Ports{Dst: 443}},
			"02:00:00:00:00:01 → everybody, ARP: who has 192.0.2.9? tell 192.0.2.1", 60,
			"the next hop's MAC is not known here: traced as the ARP request"},
		"the same, IPv6": {"vm1", "",
			diagnose.Fields{IP: &diagnose.Addresses{Src: addr("2001:db8::1"), Dst: addr("2001:db8::9")}},
			"02:00:00:00:00:01 → 33:33:ff:00:00:09 (multicast), IPv6 2001:db8::1 → ff02::1:ff00:9, neighbour " +
				"solicitation", 86, "traced as the neighbour solicitation"},
		"a host port's address": {"vm1", "",
			diagnose.Fields{IP: &diagnose.Addresses{Src: addr("198.51.100.1"), Dst: addr("198.51.100.4")}},
			"02:00:00:00:00:01 → 02:00:00:00:00:04, IPv4 198.51.100.1 → 198.51.100.4, ping", 60,
			"is an address of host port vmk4"},
		"a host port's own": {"vmk4", "vm1", diagnose.Fields{IP: &diagnose.Addresses{Dst: addr("192.0.2.1")}},
			"02:00:00:00:00:04 → 02:00:00:00:00:01, IPv4 198.51.100.4 → 192.0.2.1, ping", 60, ""},
		"no source address": {"vm1", "", diagnose.Fields{ARP: &diagnose.Addresses{Dst: addr("192.0.2.2")}},
			"02:00:00:00:00:01 → everybody, ARP: who has 192.0.2.2? tell 192.0.2.1", 60, "source address 192.0.2.1"},
		"an ARP reply": {"vm1", "",
			*to(mac(2), diagnose.Fields{ARP: &diagnose.Addresses{Src: addr("192.0.2.1"), Dst: addr("192.0.2.2")}}),
			"02:00:00:00:00:01 → 02:00:00:00:00:02, ARP: 192.0.2.1 is at 02:00:00:00:00:01", 60, ""},
		"a trunk's tag": {"vm3", "vm2", diagnose.Fields{},
			"02:00:00:00:00:03 → 02:00:00:00:00:02, VLAN 10, type 0x88b5", 60, "VLAN 10: as vm2 is in"},
		"from the network": {"u1", "vm2", diagnose.Fields{},
			"00:00:5e:00:53:01 → 02:00:00:00:00:02, VLAN 10, type 0x88b5", 60, "it stands for a station beyond u1"},
		"two tags": {"vm3", "vm2", diagnose.Fields{VLAN: ptr(uint16(7)), Outer: ptr(uint16(10))},
			"02:00:00:00:00:03 → 02:00:00:00:00:02, 802.1ad VLAN 10, VLAN 7, type 0x88b5", 60, ""},
		"a multicast packet": {"vm1", "",
			diagnose.Fields{IP: &diagnose.Addresses{Src: addr("192.0.2.1"), Dst: addr("239.1.2.3")},
				UDP: &diagnose.Ports{Dst: 5000}}, "02:00:00:00:00:01 → 01:00:5e:01:02:03 (multicast), IPv4 192.0.2.1 " +
				"→ 239.1.2.3, UDP 49152 → 5000", 60, ""},
		"another type": {"vm1", "vm2", diagnose.Fields{EtherType: ptr(uint16(0x88cc))},
			"02:00:00:00:00:01 → 02:00:00:00:00:02, type 0x88cc", 60, ""},
		"the shortest with a size": {"vm1", "vm2", diagnose.Fields{Length: 14},
			"02:00:00:00:00:01 → 02:00:00:00:00:02, type 0x88b5", 14, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, host(t, fillConfig), diagnose.Request{From: x.from, To: x.to, Frame: &x.fields})
			f := r.Frames[0]
			if f.Summary != x.want || f.Length != x.length {
				t.Errorf("%s: %s, %d bytes\nwant %s, %d", name, f.Summary, f.Length, x.want, x.length)
			}
			if said := strings.Join(f.Assumed, "\n"); !strings.Contains(said, x.assumed) || x.assumed == "" &&
				said != "" {
				t.Errorf("%s: assumed %q, want %q", name, said, x.assumed)
			}
			sound(t, name, f.Bytes)
		})
	}
}

// sound checks a frame with another decoder, checksums included.
func sound(t *testing.T, name, bytes string) {
	t.Helper()
	b, err := hex.DecodeString(bytes)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) < 20 {
		return
	}
	p := gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.Default)
	if fail := p.ErrorLayer(); fail != nil && !strings.Contains(fail.Error().Error(), "Unable to decode") &&
		!strings.Contains(bytes, "88cc") {
		t.Errorf("%s: %v", name, fail.Error())
	}
	for _, l := range p.Layers() {
		if over, ok := l.(interface {
			SetNetworkLayerForChecksum(gopacket.NetworkLayer) error
		}); ok {
			if err := over.SetNetworkLayerForChecksum(p.NetworkLayer()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err, wrong := p.VerifyChecksums(); err != nil || len(wrong) > 0 {
		t.Errorf("%s: checksums: %v, %v", name, wrong, err)
	}
}

// Each mistake in a request gives one exact sentence.
func TestMistakesInARequestAreTold(t *testing.T) {
	ip4 := func(f diagnose.Fields) *diagnose.Fields {
		f.IP = &diagnose.Addresses{Dst: addr("192.0.2.2")}
		return &f
	}
	for want, q := range map[string]diagnose.Request{
		"say where the frame enters: a port or an uplink":                                            {},
		"there is no port or uplink vm9; there are u1, vm1, vm2, vm3, vmk4":                          {From: "vm9"},
		"there is no port or uplink lab/vm9; there are u1, vm1, vm2, vm3, vmk4":                      {From: "lab/vm9"},
		"say what frame (--ip, --arp, --dst-mac, --hex, --pcap), or whom to talk to: the second end": {From: "vm1"},
		"from vm1 to lab/vm1: that is the same port": {From: "vm1",
			To: "lab/vm1"},
		"give a frame by its fields or by its bytes, not both": {From: "vm1", Frame: &diagnose.Fields{},
			Frames: [][]byte{{1}}},
		"say whom the frame is for: --to, --dst-mac, --ip or --arp": {From: "vm1", Frame: &diagnose.Fields{}},
		"a frame is ARP or IP, not both": {From: "vm1",
			Frame: ip4(diagnose.Fields{ARP: &diagnose.Addresses{Dst: addr("192.0.2.2")}})},
		"a packet is one of TCP, UDP and ICMP": {From: "vm1",
			Frame: ip4(diagnose.Fields{ICMP: true, UDP: &diagnose.Ports{Dst: 1}})},
		"TCP, UDP and ICMP need the packet's address: give --ip or --ip6": {From: "vm1", To: "vm3",
			Frame: &diagnose.Fields{ICMP: true}},
		"VLAN ids are 0–4094; 0 is a priority tag, which belongs to no VLAN": {From: "vm1", To: "vm3",
			Frame: &diagnose.Fields{VLAN: ptr(uint16(4095))}},
		"type 0x8100 is that of a VLAN tag: give it with --vlan or --qinq": {From: "vm1", To: "vm3",
			Frame: &diagnose.Fields{EtherType: ptr(uint16(0x8100))}},
		"type 0x0010: Ethernet types begin at 0x0600": {From: "vm1", To: "vm3",
			Frame: &diagnose.Fields{EtherType: ptr(uint16(0x10))}},
		"a frame of 40 bytes is too short for its headers: they take 42": {From: "vm1", To: "vm3",
			Frame: ip4(diagnose.Fields{Length: 40})},
		"a frame of 9201 bytes: frames have up to 9200": {From: "vm1", To: "vm3",
			Frame: &diagnose.Fields{Length: 9201}},
		"packet 3: there are 1": {From: "vm1", Frames: [][]byte{make([]byte, 14)}, Packet: 3},
		"frame 1 has 9201 bytes: the longest that can be traced has 9200": {From: "vm1",
			Frames: [][]byte{make([]byte, 9201)}},
		"source and destination of a packet are both IPv4 or both IPv6": {From: "vm1",
			Frame: &diagnose.Fields{IP: &diagnose.Addresses{Src: addr("::1"), Dst: addr("192.0.2.2")}}},
	} {
		t.Run(want, func(t *testing.T) {
			h := host(t, fillConfig)
			delete(h.Facts, id("vm2"))
			h.Waiting[id("vm2")] = problem.Problem{Code: problem.DeviceMissing, Device: "dev-vm2"}
			_, err := Run(h, q)
			if err == nil || err.Error() != want {
				t.Errorf("%+v: %v\nwant %s", q, err, want)
			}
			var missing *NotFoundError
			if errors.As(err, &missing) != strings.HasPrefix(want, "there is no port") {
				t.Errorf("%v is of the wrong kind", err)
			}
		})
	}
}

func TestAnUplinkOfSeveralSwitchesNeedsItsSwitch(t *testing.T) {
	h := host(t, fillConfig)
	other := *h.Plan.Switches[0]
	other.Name, other.Ports = "two", nil
	other.Uplinks = []*plan.Uplink{{ID: plan.PortID{Switch: "two", Name: "u1"}, VLANs: plan.AllVLANs()}}
	h.Plan.Switches = append(h.Plan.Switches, &other)
	h.Facts[plan.PortID{Switch: "two", Name: "u1"}] = plan.Fact{Up: true, MTU: 1500}
	q := diagnose.Request{From: "u1", To: "vm1", Frame: &diagnose.Fields{}}
	if _, err := Run(h, q); err == nil || err.Error() != `2 switches have an uplink "u1": say lab/u1 or two/u1` {
		t.Error(err)
	}
	q.From = "two/u1"
	if c := run(t, h, q).Frames[0].Causes; !slices.ContainsFunc(c, func(c diagnose.Cause) bool {
		return c.Reason == otherSwitch && c.Port == "vm1"
	}) {
		t.Errorf("%+v", c)
	}
}

// MACs that are learned from a frame are known to the next; if one frame is reported in full, those before it are sent
// first.
func TestFramesOfACaptureAreSentOneAfterTheOther(t *testing.T) {
	h := host(t, config("", "{name: web}\n{name: nest, security: {forgedTransmits: accept, macLearning: {enabled: "+
		"true, limit: 1}}}", "vm1 web", "vm2 nest"))
	frame := func(src plan.MAC) []byte {
		return append(append(append([]byte{}, broadcast[:]...), src[:]...), make([]byte, 48)...)
	}
	q := diagnose.Request{From: "vm2", Frames: [][]byte{frame(mac(8)), frame(mac(9)), frame(mac(8))}}
	r := run(t, h, q)
	var got []string
	for _, f := range r.Frames {
		got = append(got, f.Reason)
	}
	if !slices.Equal(got, []string{"", "mac-limit", ""}) || len(r.Frames[0].Steps) > 0 {
		t.Errorf("%q, %v", got, r.Frames[0].Steps)
	}
	q.Packet = 2
	if r := run(t, h, q); len(r.Frames) != 1 || r.Frames[0].Number != 2 || r.Frames[0].Reason != "mac-limit" ||
		len(r.Frames[0].Steps) == 0 || r.Sent != 2 {
		t.Errorf("%+v", r)
	}
}
