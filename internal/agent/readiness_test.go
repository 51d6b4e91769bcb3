package agent

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"heddle/internal/abi"
	"heddle/internal/dataplane"
	"heddle/internal/observe"
	"heddle/internal/plan"
)

// silence makes a port wait for its guest, and returns the number of the wait.
func (r *teamRig) silence(port string) uint32 {
	r.t.Helper()
	w := r.wait(port)
	w.ID, w.Left, w.Awake = id(port), true, false
	r.waiting.Begin(w)
	r.waiting.Follow()
	return r.wait(port).Number
}

// spoken waits until all is sent, and returns the frames, one "device vlan mac" or "device query" each, sorted.
func (r *teamRig) spoken() (list []string) {
	r.t.Helper()
	r.await(func() bool { return r.teaming.announcer.Waiting() == 0 })
	r.sent.mu.Lock()
	defer r.sent.mu.Unlock()
	for _, s := range r.sent.list {
		f := s.Frame
		switch {
		case f[0] == 0xff && f[12] == 0x81:
			list = append(list, fmt.Sprintf("%d %d %x", s.Device, int(f[14])<<8|int(f[15]), f[11]))
		case f[0] == 0xff:
			list = append(list, fmt.Sprintf("%d - %x", s.Device, f[11]))
		default:
			list = append(list, fmt.Sprintf("%d query", s.Device))
		}
	}
	slices.Sort(list)
	return list
}

func (r *teamRig) await(ok func() bool) {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatal("it does not happen")
		}
	}
}

// times returns n times each of these.
func times(n int, frames ...string) (all []string) {
	for range n {
		all = append(all, frames...)
	}
	return all
}

// What the program reports is announced before the loop hears of it, and once.
func TestS50_AGuestThatArrivesIsAnnouncedBeforeAnythingElse(t *testing.T) {
	r := newTeamRig(t, "")
	n := r.silence("c")
	r.sent.mu.Lock()
	before := len(r.sent.list)
	r.sent.mu.Unlock()
	if before != 0 {
		t.Fatalf("a silent port is announced: %d frames", before)
	}
	awake := dataplane.Tell{Tell: abi.Tell{Kind: abi.TellAwake, Other: n}}
	r.teaming.sawAwake([]dataplane.Tell{{Tell: abi.Tell{Kind: abi.TellAwake, Other: n + 1}}, awake})
	u1, vc := r.dev.byName["eno1"].Index, r.dev.byName["vc"].Index
	want := []string{fmt.Sprintf("%d - c", u1), fmt.Sprintf("%d 20 c", u1), fmt.Sprintf("%d 21 c", u1)}
	if got := r.announced(3); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("announced %q, want %q", got, want)
	}
	if !r.fact("c").Waits() {
		t.Fatal("the loop has already taken it in: nothing was tested")
	}
	r.kernel.awake = map[plan.PortID]uint32{id("c"): n}
	r.waiting.ToldAwake(dataplane.Told{Kind: abi.TellAwake, Port: id("c"), Wait: n})
	if r.fact("c").Waits() || !r.speaks("c") {
		t.Error("the port is still silent")
	}
	all := append(times(5, want...), times(2*6, fmt.Sprintf("%d query", vc))...) // three VLANs, two kinds
	slices.Sort(all)
	if got := r.spoken(); !slices.Equal(got, all) {
		t.Errorf("announced in all\n%q, want\n%q", got, all)
	}
}

// MACs that came with the port are announced with it, before or after it is active, and not twice.
func TestS50_MACsThatCameWithThePortAreAnnounced(t *testing.T) {
	for _, late := range []bool{false, true} {
		r := newTeamRig(t, "")
		n := r.silence("d")
		macs := []observe.MACEntry{{Switch: "lab", VLAN: 300, MAC: plan.MAC{2, 0, 0, 0, 0, 0xd1}, Port: id("d")}}
		moved := func() {
			r.kernel.macs = macs
			r.teaming.announceMoved(id("d"), macs)
		}
		if !late {
			moved()
			if n := r.teaming.announcer.Waiting() + len(r.rarps()); n != 0 {
				t.Errorf("%d frames for a silent port", n)
			}
		}
		r.kernel.awake = map[plan.PortID]uint32{id("d"): n}
		r.waiting.Watch()
		if late {
			moved()
		}
		u1, vd := r.dev.byName["eno1"].Index, r.dev.byName["vd"].Index
		all := append(times(5, fmt.Sprintf("%d - d", u1), fmt.Sprintf("%d 300 d", u1)),
			times(2, fmt.Sprintf("%d 300 d1", u1), fmt.Sprintf("%d query", vd), fmt.Sprintf("%d query", vd))...)
		slices.Sort(all)
		if got := r.spoken(); !slices.Equal(got, all) {
			t.Errorf("late %v: announced\n%q, want\n%q", late, got, all)
		}
	}
}

// What was made while the port was silent follows the uplinks: an uplink that has failed since gets nothing.
func TestS50_WhatIsReadyFollowsTheUplinks(t *testing.T) {
	r := newTeamRig(t, "")
	n := r.silence("a")
	r.link("eno1", false)
	r.spoken()
	r.sent.mu.Lock()
	r.sent.list = nil
	r.sent.mu.Unlock()
	r.teaming.sawAwake([]dataplane.Tell{{Tell: abi.Tell{Kind: abi.TellAwake, Other: n}}})
	if got, want := r.announced(1), []string{fmt.Sprintf("%d 10 a", r.dev.byName["eno2"].Index)}; !slices.Equal(got,
		want) {
		t.Errorf("announced %q, want %q", got, want)
	}
}
