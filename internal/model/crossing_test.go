package model_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/abi"
	"heddle/internal/model"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

const crossingText = `
switches:
- name: s
  tunnel: {endpoints: [{address: 192.0.2.1}, {address: 192.0.2.9}, {address: "2001:db8::1"}]}
  portGroups:
  - {name: web, overlay: {vni: 10}}
  - {name: inside, overlay: {vni: 10}, vlan: {access: 7}}
  - {name: alone, overlay: {vni: 20}}
ports:
- {name: a, switch: s, portGroup: web, device: a, mac: "02:00:00:00:00:01"}
- {name: b, switch: s, portGroup: inside, device: b, mac: "02:00:00:00:00:02"}
- {name: c, switch: s, portGroup: alone, device: c, mac: "02:00:00:00:00:03"}
`

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func crossingPlan(t *testing.T) *plan.Plan {
	t.Helper()
	cfg, err := spec.Parse("crossing.yaml", []byte(crossingText))
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Resolve(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// crossing is the tunnel of that switch: host2 has two endpoints, host3 speaks IPv6, and three MACs are known.
func crossing(t *testing.T) *model.Crossing {
	t.Helper()
	p := crossingPlan(t)
	members := []netip.Addr{addr("198.51.100.2"), addr("198.51.100.3"), addr("2001:db8::3"), addr("203.0.113.9")}
	reach := overlay.Reach{Endpoints: []overlay.Endpoint{{Address: members[0], Host: "host2"},
		{Address: members[1], Host: "host2"}, {Address: members[2], Host: "host3"}},
		Segments: []overlay.Segment{{VNI: 10, Members: members}, {VNI: 20}}, Learn: true}
	fact := plan.Fact{Up: true, MTU: 1600, Endpoints: []netip.Addr{addr("192.0.2.1"), addr("192.0.2.9"),
		addr("2001:db8::1")}}
	known := map[byte]netip.Addr{2: members[2], 3: members[3]} // by controllers
	c := model.NewCrossing(p.Switches[0], fact, reach)
	c.Remember(model.Known{Placed: func(who model.Station) (said []overlay.Location, shown *model.Shown) {
		if who.VNI != 10 || who.MAC[4] != 2 {
			return nil, nil
		}
		if who.MAC[5] == 1 {
			return nil, &model.Shown{Endpoint: members[1], Seen: time.Second}
		}
		if a, ok := known[who.MAC[5]]; ok {
			said = []overlay.Location{{Key: overlay.Key{VNI: who.VNI, MAC: who.MAC}, Endpoint: a,
				Source: overlay.Announced}}
		}
		return said, nil
	}})
	return c
}

// inner is a frame to 02:00:00:00:02:to with that many bytes of layer 3; a VLAN of 0 is none.
func inner(to byte, vlan uint16, length int) []byte {
	f := []byte{2, 0, 0, 0, 2, to, 2, 0, 0, 0, 0, 1}
	if to == 255 {
		copy(f, []byte{255, 255, 255, 255, 255, 255})
	}
	if vlan != 0 {
		f = binary.BigEndian.AppendUint16(append(f, 0x81, 0), vlan)
	}
	return append(append(f, 8, 0, 0x45, 0xb8), make([]byte, length-2)...)
}

// TestS105_AFrameLeavesForWhereItsDestinationIs: what is known goes to one endpoint, everything else to one of each
// host; and what does not fit, or has nobody, is refused with its reason.
func TestS105_AFrameLeavesForWhereItsDestinationIs(t *testing.T) {
	c := crossing(t)
	for _, row := range []struct {
		what  string
		vni   uint32
		frame []byte
		want  string
	}{
		{"learned", 10, inner(1, 0, 100), "198.51.100.3 learned"},
		{"announced, by IPv6", 10, inner(2, 0, 100), "2001:db8::3 announced"},
		{"behind an endpoint that is none any more", 10, inner(3, 0, 100), "198.51.100.2, 2001:db8::3"},
		{"unknown", 10, inner(9, 0, 100), "198.51.100.2, 2001:db8::3"},
		{"for all", 10, inner(255, 0, 100), "198.51.100.2, 2001:db8::3"},
		{"in a VLAN inside", 10, inner(9, 7, 100), "198.51.100.2, 2001:db8::3"},
		{"in a VLAN that the host lacks", 10, inner(9, 8, 100), "tunnel-unknown-vni"},
		{"in a VNI that the host lacks", 11, inner(9, 0, 100), "tunnel-unknown-vni"},
		{"nobody else has it", 20, inner(9, 0, 100), "tunnel-no-endpoint"},
		{"as long as fits", 10, inner(1, 0, 1550), "198.51.100.3 learned"},
		{"one byte longer", 10, inner(1, 0, 1551), "198.51.100.3 tunnel-mtu learned"},
		{"as long as fits with a tag", 10, inner(1, 7, 1546), "198.51.100.3 learned"},
		{"one byte longer with a tag", 10, inner(1, 7, 1547), "198.51.100.3 tunnel-mtu learned"},
		{"over IPv4 it fits, over IPv6 not", 10, inner(255, 0, 1540), "198.51.100.2, 2001:db8::3 tunnel-mtu"},
	} {
		t.Run(row.what, func(t *testing.T) {
			var got []string
			for _, o := range c.Leave(plan.PortID{}, row.vni, row.frame, time.Second).Outers {
				text := ""
				if o.To.IsValid() {
					text = o.To.String()
				}
				if o.Reason != abi.ReasonNone {
					text += " " + o.Reason.String()
				} else if own := []string{"192.0.2.1", "192.0.2.9", "2001:db8::1"}; !slices.Contains(own,
					o.From.String()) || o.From.Is4() != o.To.Is4() || o.TOS != 0xb8 || o.VNI != row.vni {
					t.Errorf("the packet %+v", o)
				}
				got = append(got, strings.TrimSpace(text+" "+o.Known.String()))
			}
			if text := strings.Join(got, ", "); text != row.want {
				t.Errorf("%s, want %s", text, row.want)
			}
		})
	}
}

// A sender's frames leave by one of this host's endpoints, and those of many by all.
func TestS105_ASendersFramesLeaveByOneEndpoint(t *testing.T) {
	c, by := crossing(t), map[netip.Addr]int{}
	for n := range 64 {
		f := inner(1, 0, 100)
		f[11] = byte(n)
		first := c.Leave(plan.PortID{}, 10, f, time.Second).Outers[0].From
		f[13], f[40] = 6, 9 // another frame of the same sender
		if again := c.Leave(plan.PortID{}, 10, f, time.Second).Outers[0].From; again != first {
			t.Errorf("sender %d leaves by %s and by %s", n, first, again)
		}
		by[first]++
	}
	if len(by) != 2 || by[addr("192.0.2.1")] < 16 || by[addr("192.0.2.9")] < 16 {
		t.Errorf("64 senders by endpoint: %v", by)
	}
}

// TestS105_AFrameIsTakenFromThoseThatThisHostWasToldOf: from no stranger, in no segment that the host lacks.
func TestS105_AFrameIsTakenFromThoseThatThisHostWasToldOf(t *testing.T) {
	c := crossing(t)
	double := inner(1, 0, 100)
	binary.BigEndian.PutUint16(double[12:], 0x88a8)
	twice := inner(1, 7, 100)
	binary.BigEndian.PutUint16(twice[16:], 0x8100)
	bpdu := inner(1, 0, 100)
	copy(bpdu, []byte{0x01, 0x80, 0xc2, 0, 0, 0})
	for _, row := range []struct {
		from  string
		vni   uint32
		frame []byte
		want  abi.Reason
	}{
		{"198.51.100.2", 10, inner(1, 0, 100), abi.ReasonNone},
		{"2001:db8::3", 10, inner(255, 7, 100), abi.ReasonNone},
		{"198.51.100.2", 20, inner(1, 0, 100), abi.ReasonNone},
		{"203.0.113.9", 10, inner(1, 0, 100), abi.ReasonTunnelUnknownEndpoint},
		{"192.0.2.1", 10, inner(1, 0, 100), abi.ReasonTunnelUnknownEndpoint},
		{"198.51.100.2", 11, inner(1, 0, 100), abi.ReasonTunnelUnknownVni},
		{"198.51.100.2", 10, inner(1, 8, 100), abi.ReasonTunnelUnknownVni},
		{"198.51.100.2", 20, inner(1, 7, 100), abi.ReasonTunnelUnknownVni},
		{"198.51.100.2", 10, double, abi.ReasonTunnelUnknownVni},
		{"198.51.100.2", 10, bpdu, abi.ReasonGuestLinkControl},
		{"198.51.100.2", 10, inner(1, 0, 100)[:13], abi.ReasonMalformed},
		{"198.51.100.2", 10, inner(1, 7, 100)[:14], abi.ReasonMalformed},
		{"198.51.100.2", 10, inner(1, 7, 100)[:19], abi.ReasonMalformed},
		{"198.51.100.2", 10, inner(1, 7, 100)[:20], abi.ReasonNone},
		{"198.51.100.2", 10, twice[:21], abi.ReasonMalformed},
		{"198.51.100.2", 10, twice[:22], abi.ReasonNone},
	} {
		t.Run(fmt.Sprint(row.from, row.vni, len(row.frame), row.want), func(t *testing.T) {
			if got := c.Arrive(addr(row.from), row.vni, row.frame, time.Second).Reason; got != row.want {
				t.Errorf("%s, want %s", got, row.want)
			}
		})
	}
}
