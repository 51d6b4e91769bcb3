package fleet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/fabric"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// wired adds to the first host of an overlay rig two uplinks, and ports of VLANs beside those of segments; with a
// health check or without.
const wired = `  healthCheck: %v
  uplinks: [{name: uplink1, device: eno1}, {name: uplink2, device: eno2}]
  defaults: {teaming: {policy: explicit, active: [uplink1], standby: [uplink2]}}
`

const wiredGroups = `  - {name: plain}
  - {name: trunk, vlan: {trunk: [0, 20]}}
  - {name: nested, overlay: {vni: 5000}, vlan: {trunk: [0, 20]}}
`

const wiredPorts = `- {name: plain1, switch: lab, portGroup: plain, device: p-plain1, mac: "02:00:00:00:00:31"}
- {name: plain2, switch: lab, portGroup: plain, device: p-plain2, mac: "02:00:00:00:00:32"}
- {name: trunk1, switch: lab, portGroup: trunk, device: p-trunk1, mac: "02:00:00:00:00:33"}
- {name: trunk2, switch: lab, portGroup: trunk, device: p-trunk2, mac: "02:00:00:00:00:34"}
- {name: nested, switch: lab, portGroup: nested, device: p-nested, mac: "02:00:00:00:00:35"}
`

// probeRig is an overlay rig whose first host also has uplinks, which a physical switch joins.
type probeRig struct {
	*overlayRig
	outside *cable.End            // the physical switch's end of uplink1
	ends    map[string]*cable.End // the guests of the first host, by port
}

func newProbeRig(t *testing.T) *probeRig {
	t.Helper()
	r := &probeRig{overlayRig: newOverlayRig(t, false, "web"), ends: map[string]*cable.End{}}
	physical := testkit.NS(t, "physical")
	r.command(physical, "ip", "link", "add", "sw0", "type", "bridge")
	r.command(physical, "ip", "link", "set", "sw0", "up")
	for n, device := range []string{"eno1", "eno2"} {
		far := fmt.Sprintf("far%d", n+1)
		join(t, r.hosts[0].NS, device, physical, far)
		r.command(r.hosts[0].NS, "ip", "link", "set", device, "address", plan.MAC(cable.MAC(byte(0xe1+n))).String())
		r.command(physical, "ip", "link", "set", far, "master", "sw0")
	}
	for n, name := range []string{"plain1", "plain2", "trunk1", "trunk2", "nested"} {
		r.ends[name] = r.hosts[0].Plug("p-"+name, cable.MAC(byte(0x31+n)))
	}
	r.ends["one"], r.ends["two"] = r.guests[0][0], r.guests[0][1]
	r.outside = cable.Open(t, physical, "far1")
	r.check(true)
	r.hosts[0].Up("plain1", "plain2", "trunk1", "trunk2", "nested", "one", "two", "tunnel", "uplink1", "uplink2")
	return r
}

// check puts the health check of the first host's switch on or off.
func (r *probeRig) check(on bool) {
	r.t.Helper()
	text := strings.Replace(r.config(0, "web"), "  mtu: 1500\n", "  mtu: 1500\n"+fmt.Sprintf(wired, on), 1)
	text = strings.Replace(text, "ports:\n", wiredGroups+"ports:\n"+wiredPorts, 1)
	r.hosts[0].Configure(text)
}

// looksLikeProbe is a whole probe, signed with a key that a guest has made up, behind these tags.
func looksLikeProbe(to, from plan.MAC, tags ...uint32) []byte {
	s := fabric.Secret{Number: 7}
	f := s.Frame(fabric.Probe{Number: 9, Sent: 1, Size: fabric.Shortest}, from, to)
	var between []byte
	for _, t := range tags {
		between = binary.BigEndian.AppendUint32(between, t)
	}
	return slices.Concat(f[:12], between, f[12:])
}

// stations are to whom a guest sends: all, a group, the uplinks of the host, another guest, nobody that is known.
func stations() []plan.MAC {
	return []plan.MAC{cable.Broadcast(), {1, 0, 0x5e, 0, 0, 9}, cable.MAC(0xe1), cable.MAC(0xe2), cable.MAC(0x32),
		cable.MAC(0x77)}
}

// forms are all frames of the type of probes that a port's guest can send: in a trunk tagged as well.
func forms(from plan.MAC, trunk bool) (list [][]byte) {
	for _, to := range stations() {
		list = append(list, looksLikeProbe(to, from))
		if !trunk {
			continue
		}
		list = append(list, looksLikeProbe(to, from, 0x81000014), looksLikeProbe(to, from, 0x8100e014),
			looksLikeProbe(to, from, 0x81000014, 0x81000001), looksLikeProbe(to, from, 0x81000014, 0x88a80001),
			looksLikeProbe(to, from, 0x81000014, 0x81000001, 0x81000002))
	}
	return append(list, append(list[0][:14:14], make([]byte, 46)...)) // the type alone
}

// probeSender is a port whose guest sends, and who hears a broadcast of it.
type probeSender struct {
	port  string
	mac   plan.MAC
	trunk bool
	hear  []*cable.End
}

func (r *probeRig) senders() []probeSender {
	remote := r.guests[1][0]
	return []probeSender{
		{"plain1", cable.MAC(0x31), false, []*cable.End{r.ends["plain2"], r.ends["trunk2"], r.outside}},
		{"trunk1", cable.MAC(0x33), true, []*cable.End{r.ends["trunk2"], r.ends["plain2"], r.outside}},
		{"one", cable.MAC(1), false, []*cable.End{r.ends["two"], r.ends["nested"], remote, r.kernel}},
		{"nested", cable.MAC(0x35), true, []*cable.End{r.ends["two"], r.ends["one"], remote, r.kernel}},
	}
}

// TestS109_AGuestSendsNothingThatLooksLikeAProbe: while the switch has a health check, no frame of the type of probes
// gets from a guest to another guest, an uplink, or through the tunnel, whatever its tags and whomever it is for; each
// is counted with its reason, told once, and explained. The host's own probes go on. Without the health check such
// frames pass as others do.
func TestS109_AGuestSendsNothingThatLooksLikeAProbe(t *testing.T) {
	testkit.Long(t, "has each tag and each receiver; TestS109_AHostWithoutAHealthCheckAnswersProbes has the health "+
		"check")
	t.Parallel()
	testkit.Tool(t, "ip")
	r := newProbeRig(t)
	for _, s := range r.senders() {
		t.Run(s.port, func(t *testing.T) {
			was := r.t
			r.t = t
			defer func() { r.t = was }()
			r.refused(s.port, forms(s.mac, s.trunk), s.hear)
		})
	}
	r.told()
	r.hostsGoOn()

	r.check(false)
	for _, s := range r.senders() {
		f := looksLikeProbe(cable.Broadcast(), s.mac)
		r.ends[s.port].Send(f)
		for _, e := range s.hear {
			e.Expect(f, "without a health check, from "+s.port)
		}
	}
	for _, s := range r.senders() {
		if s.trunk {
			f := looksLikeProbe(cable.Broadcast(), s.mac, 0x81000014, 0x81000001, 0x81000002)
			r.ends[s.port].Send(f)
			s.hear[len(s.hear)-1].Expect(f, "without a health check, behind three tags, from "+s.port)
		}
	}
}

// refused: none of the frames gets to those who hear the port; all are counted.
func (r *probeRig) refused(port string, list [][]byte, hear []*cable.End) {
	r.t.Helper()
	const reason = "guest-health-probe"
	h := r.hosts[0]
	before := h.Counter(port, reason)
	for _, f := range list {
		r.ends[port].Send(f)
	}
	h.Await("each frame is counted at "+port, func() bool {
		return h.Counter(port, reason) >= before+uint64(len(list))
	})
	if n := h.Counter(port, reason) - before; n != uint64(len(list)) {
		r.t.Errorf("%d frames are counted, want %d", n, len(list))
	}
	marker := cable.Frame(cable.Broadcast(), [6]byte(list[0][6:12]), 0, "after the probes of "+port)
	r.ends[port].Send(marker)
	for _, e := range hear {
		all := e.Gather("what comes from "+port, func(all [][]byte) bool {
			return bytes.Equal(all[len(all)-1], marker)
		})
		for _, f := range all {
			if bytes.Equal(f[6:12], list[0][6:12]) && bytes.Contains(f[12:min(len(f), 40)], []byte{0x89, 0x22}) {
				r.t.Errorf("%x got through", f)
			}
		}
	}
}

// told: the host says why, in its events and in a trace.
func (r *probeRig) told() {
	r.t.Helper()
	h := r.hosts[0]
	h.Await("the guest's probes are an event", func() bool {
		return strings.Contains(h.must("events", "--no-follow"), "guest-health-probe")
	})
	f := looksLikeProbe(cable.Broadcast(), cable.MAC(0x33), 0x81000014, 0x81000001)
	cmd, out := h.Command("trace", "trunk1", "--hex", fmt.Sprintf("%x", f)), bytes.Buffer{}
	cmd.Stdout = &out
	if err := h.Launch(cmd); err != nil {
		r.t.Fatal(err)
	}
	if cmd.Wait() == nil {
		r.t.Error("the trace says that the frame passes")
	}
	text := out.String()
	for _, part := range []string{"guest-health-probe", "healthCheck", "0x8922"} {
		if !strings.Contains(text, part) {
			r.t.Errorf("the trace does not say %q:\n%s", part, text)
		}
	}
}

// hostsGoOn: the host's own probes from uplink to uplink are sent and answered, and all pass.
func (r *probeRig) hostsGoOn() {
	r.t.Helper()
	h := r.hosts[0]
	ask := func() *api.HostHealth {
		n, err := h.NetworkHealth(r.t.Context())
		if err != nil {
			r.t.Fatal(err)
		}
		return n
	}
	before := ask()
	h.Await("the host's own probes are sent and answered, and pass", func() bool {
		now := ask()
		return now.Sent > before.Sent && now.Answered > before.Answered && now.Paths > 0 && now.Passing == now.Paths
	})
}
