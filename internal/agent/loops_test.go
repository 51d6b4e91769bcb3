package agent

import (
	"strings"
	"testing"
	"time"

	"heddle/internal/abi"
	"heddle/internal/dataplane"
	"heddle/internal/host/hostdev"
	"heddle/internal/spec"
	"heddle/internal/uplinks/announce"
	"heddle/internal/uplinks/loops"
)

// sentBy counts the frames that are sent by each device.
type sentBy map[uint32]int

func (s sentBy) Send(ifindex uint32, _ []byte) error { s[ifindex]++; return nil }

func (s sentBy) SendThrough(ifindex uint32, frame []byte) error { return s.Send(ifindex, frame) }
func (sentBy) Close() error                                     { return nil }

// TestS110_ABlockedPortSendsNoProbesOn joins a port with one of another host that looks for loops: the host's probe is
// forwarded by the uplink, but not while the port is blocked. Then the loop is open here, and the other host's end may
// stay unblocked.
func TestS110_ABlockedPortSendsNoProbesOn(t *testing.T) {
	other := loops.Sender{ID: [16]byte{1}}
	const header = 14 // of the frame, before the payload that is reported
	for name, c := range map[string]struct {
		blocks []loops.Block
		want   int
	}{
		"in service": {nil, 1},
		"blocked":    {[]loops.Block{{Port: id("a"), Retry: time.Now().Add(time.Hour)}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, strings.Replace(base, "vlan: {access: 100}", "vlan: {access: 100}, security: "+
				"{forgedTransmits: accept}", 1))
			r.dev.nic("eno1", 1500)
			r.dev.veth("pa", "02:00:00:00:00:0a")
			r.settler.settle()
			sent := sentBy{}
			r.state.Loops = c.blocks
			r.loops.Start(func() (announce.Sender, error) { return sent, nil })
			r.loops.Heard(dataplane.Told{Kind: abi.TellProbe, Port: id("a"),
				Probe: other.Frame(loops.Probe{Number: 1, VLAN: 100, Round: 1}, false)[header:]})
			if err := r.loops.Close(); err != nil {
				t.Fatal(err)
			}
			uplink := r.dev.byName["eno1"].Index
			if len(sent) > 1 || sent[uplink] != c.want {
				t.Errorf("sent by device %v, want %d by %d", sent, c.want, uplink)
			}
		})
	}
}

// TestS110_OnlyTheChangeThatClosesALoopIsRefused joins the devices of two ports: the change that would connect the
// second port is refused. Another change is not refused while both are connected and neither is blocked yet.
func TestS110_OnlyTheChangeThatClosesALoopIsRefused(t *testing.T) {
	r := newRig(t, strings.Replace(base, "vlan: {access: 100}", "vlan: {access: 100}, security: {forgedTransmits: "+
		"accept}", 1))
	r.loops.Start(func() (announce.Sender, error) { return sentBy{}, nil })
	r.follow("loop-search", r.loops)
	t.Cleanup(func() { _ = r.parts.Close() })
	x, y := r.dev.veth("x", "02:00:00:00:00:21"), r.dev.veth("y", "02:00:00:00:00:22")
	join := func() {
		x.Peer.Index, x.Peer.Elsewhere = y.Index, false
		y.Peer.Index, y.Peer.Elsewhere = x.Index, false
	}
	apart := [2]hostdev.Peer{x.Peer, y.Peer}
	join()
	if err := r.connect(spec.Port{Name: "x", PortGroup: "web", Device: "x"}); err != nil {
		t.Fatal(err)
	}
	if err := r.connect(spec.Port{Name: "y", PortGroup: "web", Device: "y"}); err == nil ||
		!strings.Contains(err.Error(), "would close a loop") {
		t.Errorf("the port that closes the loop: %v", err)
	}
	x.Peer, y.Peer = apart[0], apart[1]
	if err := r.connect(spec.Port{Name: "y", PortGroup: "web", Device: "y"}); err != nil {
		t.Fatal(err)
	}
	join() // the agent has not looked yet
	if w := r.loops.Want(r.Active()); len(w.Blocked) > 0 {
		t.Fatalf("blocked already: %v", w.Blocked)
	}
	if err := r.block("a", true); err != nil {
		t.Errorf("a change that has nothing to do with the loop: %v", err)
	}
}
