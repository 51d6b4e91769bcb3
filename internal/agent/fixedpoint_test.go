package agent

import (
	"net/netip"
	"strings"
	"testing"

	"heddle/cmd/heddle/features/hosts"
	"heddle/internal/agent/active"
	"heddle/internal/agent/pathmtu"
	"heddle/internal/host/hostdev"
	"heddle/internal/plan/problem"
	"heddle/internal/uplinks/announce"
)

// rounds counts those of the reconciles.
type rounds int

func (r *rounds) Prepare(*active.Draft) { *r++ }
func (r *rounds) Close() error          { return nil }

// wishes is a part that wants something else whenever it is told what is active, as long as there is something left.
type wishes struct{ left int }

func (w *wishes) Settled(*active.Value) { w.left = max(0, w.left-1) }
func (w *wishes) Close() error          { return nil }
func (w *wishes) Want(*active.Value) active.Want {
	return active.Want{Lengths: map[netip.Addr]int{netip.IPv4Unspecified(): w.left}}
}

// withParts is a rig with the parts that want something, the protocols on the uplinks, those of the program's features,
// and a count of rounds.
func withParts(t *testing.T) (*rig, *rounds) {
	r := newRig(t, strings.Replace(base, "vlan: {access: 100}", "vlan: {access: 100}, security: {forgedTransmits: "+
		"accept}", 1))
	var n rounds
	r.loops.Start(func() (announce.Sender, error) { return sentBy{}, nil })
	r.follow("loop-search", r.loops)
	r.follow("path-mtu", pathmtu.New(pathmtu.Host{Reader: r.Reader, Ask: r.settler.ask, Post: r.Post,
		Complain: r.Complain, Read: hostdev.PathMTUs}))
	r.follow("captures", &n)
	s := &sockets{open: map[[2]uint32]*silentSocket{}}
	r.speakOn(s)
	if err := r.extend(hosts.All(), s.opener); err != nil {
		t.Fatal(err)
	}
	if err := r.parts.Faults(); err != nil {
		t.Fatal(err)
	}
	return r, &n
}

// What parts want is settled after three rounds at most: a loop that devices close, which blocks a port, included. From
// then on nothing is asked for, and asking makes no reconcile.
func TestThePartsReachAFixedPoint(t *testing.T) {
	r, n := withParts(t)
	a, b := r.dev.veth("pa", "02:00:00:00:00:0a"), r.dev.veth("pb", "02:00:00:00:00:0b")
	r.dev.nic("eno1", 1500)
	r.settler.settle()
	a.Peer.Index, a.Peer.Elsewhere = b.Index, false
	b.Peer.Index, b.Peer.Elsewhere = a.Index, false
	*n = 0
	r.settler.settle()
	if *n < 1 || *n > 3 {
		t.Errorf("%d rounds", *n)
	}
	blocked := 0
	for _, why := range r.Active().Problems {
		if why.Code == problem.LoopSeen {
			blocked++
		}
	}
	if blocked != 1 {
		t.Errorf("%d ports are blocked: %v", blocked, r.Active().Problems)
	}
	*n = 0
	r.settler.ask()
	if *n != 0 || r.reconciler.asked() {
		t.Errorf("%d rounds for nothing", *n)
	}
}

// Parts that never agree do not keep the agent busy: it tries again with the next tick, and says so.
func TestPartsThatNeverAgreeAreNotFollowedForEver(t *testing.T) {
	r, n := withParts(t)
	w := &wishes{left: 2}
	r.follow("membership", w)
	r.settler.settle()
	if *n > 3 || w.left != 0 || r.settler.retry {
		t.Errorf("parts that agree after a while: %d rounds, tried again: %v", *n, r.settler.retry)
	}
	*n, w.left = 0, 1000
	r.settler.settle()
	if *n != mostAsked || !r.settler.retry || !strings.Contains(r.Complaint(), "want something else") {
		t.Errorf("%d rounds, tried again: %v, %q", *n, r.settler.retry, r.Complaint())
	}
}
