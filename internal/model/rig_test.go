package model

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"heddle/internal/abi"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// rig is one switch "s" under test, built from ports and uplinks by name.
type rig struct {
	t     *testing.T
	plan  *plan.Plan
	sw    *plan.Switch
	facts plan.Facts
	h     *Host
	now   time.Duration
}

type part func(*rig)

// newRig makes a switch with an MTU of 1500 and every check on. Ports get the MACs 02::1, 02::2 …, and the numbers
// 1, 2 …, uplink devices 0a::1, 0a::2 …, in the order given.
func newRig(t *testing.T, parts ...part) *rig {
	t.Helper()
	r := &rig{t: t, facts: plan.Facts{}, now: time.Hour}
	r.sw = &plan.Switch{Name: "s", Kind: spec.Distributed, MTU: 1500, ReversePath: true, ReversePathPromiscuous: true,
		BlockGuestBPDU: true}
	r.plan = &plan.Plan{Switches: []*plan.Switch{r.sw}}
	for _, p := range parts {
		p(r)
	}
	for _, p := range r.sw.Ports {
		if p.Policy.Teaming.Active.V == nil {
			for _, u := range r.sw.Uplinks {
				p.Policy.Teaming.Active.V = append(p.Policy.Teaming.Active.V, u.ID.Name)
			}
		}
	}
	r.h = New(r.plan, r.facts, r.now)
	return r
}

func id(name string) plan.PortID { return plan.PortID{Switch: "s", Name: name} }

func portMAC(n int) plan.MAC { return plan.MAC{2, 0, 0, 0, 0, byte(n)} }

func uplinkMAC(n int) plan.MAC { return plan.MAC{0x0a, 0, 0, 0, 0, byte(n)} }

// vnic adds a connected vNIC that may send from any MAC, so that a test of another rule needs no more.
func vnic(name string, opts ...func(*plan.Port, *plan.Fact)) part {
	return func(r *rig) {
		n := len(r.sw.Ports) + 1
		p := &plan.Port{ID: id(name), Number: uint32(n), InitialMAC: portMAC(n), Device: name,
			Policy: &plan.Effective{}}
		p.Policy.ForgedTransmits.V = true
		p.Policy.DHCPServer.V, p.Policy.RouterAdvertisements.V = true, true
		p.Policy.Learning.Ageing.V = time.Minute
		p.Policy.Learning.Limit.V = 4096
		p.Policy.Learning.LimitPolicy.V = spec.LimitDrop
		p.Policy.Learning.UnicastFlooding.V = true
		p.Policy.Teaming.Policy.V = spec.OriginatingPort
		f := plan.Fact{Up: true, MTU: 1500, SeenMAC: p.InitialMAC}
		for _, o := range opts {
			o(p, &f)
		}
		r.sw.Ports = append(r.sw.Ports, p)
		r.facts[p.ID] = f
	}
}

func up(name string, opts ...func(*plan.Uplink, *plan.Fact)) part {
	return func(r *rig) {
		n := len(r.sw.Uplinks) + 1
		u := &plan.Uplink{ID: id(name), Device: name, VLANs: plan.AllVLANs()}
		f := plan.Fact{Up: true, MTU: 1500, DeviceMAC: uplinkMAC(n)}
		for _, o := range opts {
			o(u, &f)
		}
		r.sw.Uplinks = append(r.sw.Uplinks, u)
		r.facts[u.ID] = f
	}
}

func set(f func(*plan.Switch)) part { return func(r *rig) { f(r.sw) } }

// policy makes a port option of a change to the effective policy.
func policy(f func(*plan.Effective)) func(*plan.Port, *plan.Fact) {
	return func(p *plan.Port, _ *plan.Fact) { f(p.Policy) }
}

func fact(f func(*plan.Fact)) func(*plan.Port, *plan.Fact) {
	return func(_ *plan.Port, x *plan.Fact) { f(x) }
}

func access(v uint16) func(*plan.Port, *plan.Fact) {
	return policy(func(e *plan.Effective) { e.VLAN.V = plan.VLAN{Mode: plan.VLANAccess, ID: v} })
}

func trunk(ad bool, ids ...uint16) func(*plan.Port, *plan.Fact) {
	return policy(func(e *plan.Effective) {
		e.VLAN.V = plan.VLAN{Mode: plan.VLANTrunk, AD: ad}
		for _, v := range ids {
			e.VLAN.V.Set.AddRange(v, v)
		}
	})
}

var (
	learning    = policy(func(e *plan.Effective) { e.Learning.Enabled.V = true })
	noFlooding  = policy(func(e *plan.Effective) { e.Learning.UnicastFlooding.V = false })
	promiscuous = policy(func(e *plan.Effective) { e.Promiscuous.V = true })
	noForgery   = policy(func(e *plan.Effective) { e.ForgedTransmits.V = false })
	blocked     = policy(func(e *plan.Effective) { e.Blocked.V = true })
	txUplink    = func(p *plan.Port, _ *plan.Fact) { p.TxUplink = true }
)

func limit(n int, l spec.LimitPolicy) func(*plan.Port, *plan.Fact) {
	return policy(func(e *plan.Effective) { e.Learning.Limit.V, e.Learning.LimitPolicy.V = n, l })
}

func team(p spec.TeamingPolicy, active, standby []string) func(*plan.Port, *plan.Fact) {
	return policy(func(e *plan.Effective) {
		e.Teaming.Policy.V, e.Teaming.Active.V, e.Teaming.Standby.V = p, active, standby
	})
}

func down(_ *plan.Uplink, f *plan.Fact) { f.Up = false }

// change applies a change of plan or facts.
func (r *rig) change(f func(*rig)) {
	f(r)
	r.h.SetPlan(r.plan, r.facts, r.now)
}

func (r *rig) fact(name string, f func(*plan.Fact)) {
	x := r.facts[id(name)]
	f(&x)
	r.facts[id(name)] = x
}

func (r *rig) port(name string) *plan.Port {
	for _, p := range r.sw.Ports {
		if p.ID.Name == name {
			return p
		}
	}
	r.t.Fatalf("no port %q", name)
	return nil
}

// send hands a frame to the switch and checks that it was left alone.
func (r *rig) send(at string, frame []byte) Result {
	r.t.Helper()
	before := bytes.Clone(frame)
	res := r.h.Frame(id(at), frame, r.now)
	if !bytes.Equal(before, frame) {
		r.t.Fatalf("the frame given in was changed")
	}
	for _, c := range res.Copies { // scribbling over copies must not reach the frame
		b := bytes.Clone(c.Frame)
		clear(c.Frame)
		if !bytes.Equal(before, frame) {
			r.t.Fatalf("a copy shares its bytes with the frame")
		}
		copy(c.Frame, b)
	}
	return res
}

// outcome is what a test expects: whole frames by receiver ("host" for the host's stack).
type outcome struct {
	copies  map[string][]byte
	refused map[string]abi.Reason
	reason  abi.Reason
}

// expect compares a result whole: copies byte for byte, refusals, disposition.
func (r *rig) expect(res Result, want outcome) {
	r.t.Helper()
	got := map[string][]byte{}
	for _, c := range res.Copies {
		name := c.To.Name
		if c.HostStack {
			name = "host"
		}
		if _, twice := got[name]; twice {
			r.t.Errorf("%s received two copies", name)
		}
		got[name] = c.Frame
	}
	for name, f := range want.copies {
		if !bytes.Equal(got[name], f) {
			r.t.Errorf("%s received\n  %x, want\n  %x", name, got[name], f)
		}
	}
	for name := range got {
		if _, ok := want.copies[name]; !ok {
			r.t.Errorf("%s received a copy", name)
		}
	}
	refused := map[string]abi.Reason{}
	for _, x := range res.Refused {
		refused[x.Port.Name] = x.Reason
	}
	if fmt.Sprint(refused) != fmt.Sprint(want.refused) {
		r.t.Errorf("refusals %v, want %v", refused, want.refused)
	}
	if res.Reason != want.reason || res.Delivered != (want.reason == abi.ReasonNone) {
		r.t.Errorf("delivered %v, reason %v; want reason %v", res.Delivered, res.Reason, want.reason)
	}
}

// delivered expects the same bytes at every named receiver, and nothing else.
func (r *rig) delivered(res Result, frame []byte, to ...string) {
	r.t.Helper()
	w := outcome{copies: map[string][]byte{}}
	for _, n := range to {
		w.copies[n] = frame
	}
	r.expect(res, w)
}

// dropped expects no copy and no refusal of one.
func (r *rig) dropped(res Result, reason abi.Reason) {
	r.t.Helper()
	r.expect(res, outcome{reason: reason})
}

func (r *rig) counters(name string) Counters { return r.h.Counters()[id(name)] }

var all = plan.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// eth makes a frame of 64 bytes or a little more: addresses, tags and type, payload.
func eth(dst, src plan.MAC, parts ...[]byte) []byte {
	f := append(append([]byte(nil), dst[:]...), src[:]...)
	for _, p := range parts {
		f = append(f, p...)
	}
	if len(parts) == 0 || len(parts[len(parts)-1]) == 4 { // ends in a tag, or nothing
		f = append(f, 0x08, 0x06)
	}
	for len(f) < 64 {
		f = append(f, byte(len(f)))
	}
	return f
}

func tag(tpid, tci uint16) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, tpid), tci)
}

// tagged is the frame with a tag put in.
func tagged(f []byte, tpid, tci uint16) []byte {
	return append(append(append([]byte(nil), f[:12]...), tag(tpid, tci)...), f[12:]...)
}

func ipv4(src, dst byte) []byte {
	p := make([]byte, 2+20)
	binary.BigEndian.PutUint16(p, typeIPv4)
	p[2], p[2+15], p[2+19] = 0x45, src, dst
	return p
}

func ipv6(src, dst byte) []byte {
	p := make([]byte, 2+40)
	binary.BigEndian.PutUint16(p, typeIPv6)
	p[2], p[2+23], p[2+39] = 0x60, src, dst
	return p
}
