package agent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
	"heddle/internal/uplinks"
	"heddle/internal/uplinks/lacp"
	"heddle/internal/uplinks/linkproto"
	"heddle/internal/uplinks/lldp"
	"heddle/internal/uplinks/memory"
	"heddle/internal/uplinks/wire"
)

const bundled = `
switches:
  - name: lab
    uplinks: [{name: u1, device: eno1}, {name: u2, device: eno2}, {name: u3, device: eno3}]
    lags: [{name: bundle, uplinks: [u1, u2], timeout: fast, fallback: none}]
    discovery: {lldp: both}
    portGroups: [{name: web}]
ports:
  - {name: a, switch: lab, portGroup: web, device: pa, mac: "02:00:00:00:00:0a"}
`

// silentSocket sends nothing and receives the frames that the test puts into it.
type silentSocket struct {
	in     chan *wire.Frame
	closed chan struct{}
	once   sync.Once
}

func (s *silentSocket) Send([]byte) error { return nil }

func (s *silentSocket) Hear(wire.Listen) error { return nil }

func (s *silentSocket) Bound() bool { return true }

func (s *silentSocket) Receive() (*wire.Frame, error) {
	select {
	case f := <-s.in:
		return f, nil
	case <-s.closed:
		return nil, errors.New("closed")
	}
}

func (s *silentSocket) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// sockets are the open sockets by EtherType and device.
type sockets struct {
	mu   sync.Mutex
	open map[[2]uint32]*silentSocket
}

func (s *sockets) opener(ifindex uint32, listen wire.Listen) (linkproto.Socket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &silentSocket{in: make(chan *wire.Frame), closed: make(chan struct{})}
	s.open[[2]uint32{uint32(listen.EtherType), ifindex}] = n
	return n, nil
}

func (s *sockets) put(etherType uint16, ifindex uint32, payload []byte) bool {
	s.mu.Lock()
	c := s.open[[2]uint32{uint32(etherType), ifindex}]
	s.mu.Unlock()
	if c == nil {
		return false
	}
	select {
	case c.in <- &wire.Frame{Source: [6]byte{2}, Payload: payload}:
		return true
	case <-c.closed:
		return false
	}
}

// bundleRig returns an agent with three cards that runs LACP and LLDP on sockets in memory.
func bundleRig(t *testing.T) (*rig, *sockets) {
	t.Helper()
	r := newRig(t, "")
	for _, name := range []string{"eno1", "eno2", "eno3"} {
		r.dev.nic(name, 1500)
	}
	s := &sockets{open: map[[2]uint32]*silentSocket{}}
	r.speakOn(s)
	if err := r.apply(bundled); err != nil {
		t.Fatal(err)
	}
	return r, s
}

func (r *rig) speakOn(s *sockets) {
	r.followUplinks(s.opener)
	a := r.Agent
	r.t.Cleanup(func() {
		if err := a.close(); err != nil {
			r.t.Error(err)
		}
	})
}

// loopUntil runs the loop's messages until the condition holds.
func (r *rig) loopUntil(what string, holds func() bool) {
	r.t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case f := <-r.Calls():
			f()
		case <-r.settler.itsTurn(): // on a loaded machine a settle takes so long that the next one is delayed
			r.settler.settle()
		case <-tick.C:
		case <-deadline:
			r.t.Fatalf("waited in vain: %s", what)
		}
	}
}

func (r *rig) out(name string) problem.Code { return r.kernel.last().Facts[id(name)].Out.Value().Code }

// agree plays an LACP partner on both members until they are used.
func (r *rig) agree(s *sockets) {
	r.t.Helper()
	devices := map[string]uint32{"u1": r.dev.byName["eno1"].Index, "u2": r.dev.byName["eno2"].Index}
	ctx, cancel := context.WithCancel(context.Background())
	var partner sync.WaitGroup
	partner.Go(func() { playPartner(ctx, r.teaming.lags, s, devices) })
	r.loopUntil("both members are used", func() bool { return r.out("u1") == "" && r.out("u2") == "" })
	cancel()
	partner.Wait()
}

// playPartner sends on each member, every 100 ms, the LACPDU of a partner that has come as far as we have.
func playPartner(ctx context.Context, l *uplinks.LAGs, s *sockets, devices map[string]uint32) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
		status, _ := l.Status(id("bundle"))
		for i, m := range status.Members {
			p := lacp.PDU{Actor: lacp.Info{System: lacp.System{Priority: 1, MAC: plan.MAC{2, 0, 0, 0, 0, 0xbb}}, Key: 3,
				Port:  lacp.Port{Number: uint16(i + 1)},
				State: m.Actor.State &^ (lacp.Defaulted | lacp.Expired)}, Partner: m.Actor}
			s.put(lacp.EtherType, devices[m.Name], p.Encode())
		}
	}
}

func TestS53_MembersAreOutBeforeTheyHaveAPartner(t *testing.T) {
	r, _ := bundleRig(t)
	for _, d := range r.kernel.applied {
		for _, name := range []string{"u1", "u2"} {
			if f, ok := d.Facts[id(name)]; ok && f.Out == nil {
				t.Fatalf("%s was used before it had a partner", name)
			}
		}
		if f := d.Facts[id("u3")]; f.Out != nil {
			t.Fatalf("u3 is out: %s", f.Out)
		}
	}
	r.loopUntil("LLDP is spoken on u1", func() bool { return r.answers.view().Uplinks[0].LLDP != nil })
	if v := r.answers.view().Uplinks[0]; v.State != api.Out || v.LAG == nil || v.LAG.Name != "bundle" {
		t.Errorf("u1 is shown as %+v", v)
	}
}

func TestS52_WhatLACPFindsOutIsActiveAndSurvivesARestart(t *testing.T) {
	t.Parallel() // it waits for the aggregate-wait time
	r, s := bundleRig(t)
	r.agree(s)
	if v := r.answers.view().Uplinks[1]; v.State != api.Up || !v.LAG.Used || v.LAG.Partner == nil ||
		v.LAG.Partner.System != "02:00:00:00:00:bb" {
		t.Errorf("u2 is shown as %+v", v.LAG)
	}
	if n := countEvents(t, r, event.Neighbour); n < 2 {
		t.Errorf("%d events about partners", n)
	}
	system := r.saved().LAGs[0].Snapshot.System
	applied := len(r.kernel.applied)
	if err := r.restart(""); err != nil {
		t.Fatal(err)
	}
	for _, d := range r.kernel.applied[applied:] {
		if d.Facts[id("u1")].Out != nil || d.Facts[id("u2")].Out != nil {
			t.Fatal("a restart took the members out")
		}
	}
	if got := r.saved().LAGs[0].Snapshot.System; got != system {
		t.Errorf("the system id was %s, is %s", system, got)
	}
	// Another card with that name is another link.
	delete(r.dev.byName, "eno2")
	r.dev.nic("eno2", 1500)
	if err := r.restart(""); err != nil {
		t.Fatal(err)
	}
	if r.out("u1") != "" || r.out("u2") == "" {
		t.Errorf("with another card: u1 %q, u2 %q", r.out("u1"), r.out("u2"))
	}
}

func countEvents(t *testing.T, r *rig, kind event.Kind) (n int) {
	t.Helper()
	list, _, err := r.events.After(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// rememberedLAGs are the LAGs in the agent's state, but for what the partner said last, which is noted when the LAG is
// noted for another reason.
func (r *rig) rememberedLAGs() string {
	r.t.Helper()
	var lags []memory.LAG
	b, err := json.Marshal(r.state.LAGs)
	if err == nil {
		err = json.Unmarshal(b, &lags)
	}
	for i := range lags {
		for k := range lags[i].Snapshot.Members {
			lags[i].Snapshot.Members[k].Partner.State = 0
		}
	}
	if err == nil {
		b, err = json.Marshal(lags)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

// A plan that is refused leaves the LAG as it is; one that becomes active removes the LAGs that it does not have.
func TestS52_ARefusedPlanLeavesTheLAGAlone(t *testing.T) {
	t.Parallel() // it waits for the aggregate-wait time
	r, s := bundleRig(t)
	r.agree(s)
	before := r.rememberedLAGs()
	alone := `
switches:
  - {name: lab, uplinks: [{name: u1, device: eno1}, {name: u2, device: eno2}], portGroups: [{name: web}]}
ports:
  - {name: a, switch: lab, portGroup: web, device: pa, mac: "02:00:00:00:00:0a"}
`
	r.kernel.fail = errors.New("no")
	if err := r.apply(alone); err == nil {
		t.Fatal("nothing failed")
	}
	r.kernel.fail = nil
	r.settler.settle()
	if after := r.rememberedLAGs(); after != before || r.out("u1") != "" {
		t.Errorf("u1 %q, state\n%s\nwas\n%s", r.out("u1"), after, before)
	}
	if err := r.apply(alone); err != nil {
		t.Fatal(err)
	}
	if len(r.state.LAGs)+len(r.state.LLDP) != 0 || r.out("u1") != "" {
		t.Errorf("without the LAG: %+v, %+v, u1 %q", r.state.LAGs, r.state.LLDP, r.out("u1"))
	}
}

func TestLLDP_NeighboursAreShownAndPublished(t *testing.T) {
	r, s := bundleRig(t)
	p := lldp.PDU{Chassis: lldp.ChassisID{Subtype: lldp.ChassisMAC, Value: []byte{2, 0, 0, 0, 0, 9}},
		Port: lldp.PortID{Subtype: lldp.PortIfName, Value: []byte("Eth1/7")},
		TTL:  120, SystemName: "leaf\x1b[2J", Capabilities: &lldp.Capabilities{Enabled: lldp.Bridge}}
	b, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	before := countEvents(t, r, event.Neighbour)
	r.loopUntil("LLDP listens", func() bool { return s.put(lldp.EtherType, r.dev.byName["eno3"].Index, b) })
	r.loopUntil("the neighbour is published", func() bool { return countEvents(t, r, event.Neighbour) == before+1 })
	n := r.answers.view().Uplinks[2].LLDP.Neighbours
	if len(n) != 1 || n[0].Port != "Eth1/7" || n[0].SystemName != "leaf\ufffd[2J" ||
		n[0].Chassis != "02:00:00:00:00:09" {
		t.Errorf("%+v", n)
	}
	if len(r.saved().LLDP) != 3 {
		t.Errorf("what was said is not remembered: %+v", r.saved().LLDP)
	}
}

func TestADryRunNotesVLANsThatTheNeighbourDoesNotAnnounce(t *testing.T) {
	r, s := bundleRig(t)
	p := lldp.PDU{Chassis: lldp.ChassisID{Subtype: lldp.ChassisMAC, Value: []byte{2, 0, 0, 0, 0, 9}},
		Port: lldp.PortID{Subtype: lldp.PortIfName, Value: []byte("Eth1/7")}, TTL: 120, SystemName: "leaf",
		Org: []lldp.Org{{OUI: [3]byte{0, 0x80, 0xc2}, Subtype: 3, Value: []byte{0, 30, 2, 'd', 'b'}}}}
	b, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	r.loopUntil("LLDP listens", func() bool { return s.put(lldp.EtherType, r.dev.byName["eno3"].Index, b) })
	r.loopUntil("the neighbour is known", func() bool { return len(r.answers.view().Uplinks[2].LLDP.Neighbours) == 1 })
	cfg, err := spec.Parse("next.yaml", []byte("switches:\n- name: lab\n  uplinks: [{name: u7, device: eno3}]\n"+
		"  portGroups: [{name: web, vlan: {access: 10}}, {name: db, vlan: {access: 30}}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	var out api.Applied
	if _, _, err := r.changer.dry(cfg, &out); err != nil {
		t.Fatal(err)
	}
	want := []string{"switch lab, port group web: VLAN 10 is not among those that port Eth1/7 of leaf announces by " +
		"LLDP at u7: 30"}
	if !slices.Equal(out.Notes, want) {
		t.Errorf("%q, want %q", out.Notes, want)
	}
}

func TestLAGGoodbye_TellsThePartner(t *testing.T) {
	t.Parallel() // it waits for the aggregate-wait time
	r, s := bundleRig(t)
	r.agree(s)
	frames := uplinks.LAGGoodbye(r.state.LAGs[0])
	if len(frames) != 2 {
		t.Fatalf("%d frames", len(frames))
	}
	p, _, err := lacp.Decode(frames[0].Payload)
	if err != nil || p.Actor.State&(lacp.Synchronization|lacp.Distributing|lacp.Aggregation) != 0 ||
		p.Partner.System.MAC != (plan.MAC{2, 0, 0, 0, 0, 0xbb}) {
		t.Errorf("%+v, %v", p, err)
	}
}
