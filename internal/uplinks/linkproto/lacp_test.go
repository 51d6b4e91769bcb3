package linkproto

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/plan"
	"heddle/internal/uplinks/lacp"
)

var (
	lagID = plan.PortID{Switch: "lab", Name: "lag1"}
	them  = lacp.System{Priority: 1, MAC: plan.MAC{2, 0, 0, 0, 0, 0xbb}}
)

// oneLAG returns a LAG of the members a and b on devices 1 and 2.
func oneLAG() LAG {
	return LAG{ID: lagID, Config: lacp.Config{System: lacp.System{Priority: 1, MAC: plan.MAC{2, 0, 0, 0, 0, 1}}, Key: 1,
		Active: true, Fast: true,
		Fallback: lacp.FallbackNone, Members: []lacp.Member{{Name: "a", Port: lacp.Port{Number: 1}},
			{Name: "b", Port: lacp.Port{Number: 2}}}},
		Devices: map[string]Uplink{"a": {Ifindex: 1, MAC: plan.MAC{2, 0, 0, 0, 0, 1}, Up: true},
			"b": {Ifindex: 2, MAC: plan.MAC{2, 0, 0, 0, 0, 2}, Up: true}}}
}

// lastPDU returns the last LACPDU sent on a device since the last call, nil if there was none.
func lastPDU(t *testing.T, n *network, ifindex uint32) *lacp.PDU {
	t.Helper()
	sent := n.take(ifindex)
	if len(sent) == 0 {
		return nil
	}
	b := sent[len(sent)-1].bytes
	p, _, err := lacp.Decode(b[14:])
	if err != nil || [6]byte(b) != lacp.Destination || [6]byte(b[6:]) != [6]byte{2, 0, 0, 0, 0, byte(ifindex)} {
		t.Fatalf("sent %x: %v", b, err)
	}
	return p
}

// join plays a partner that agrees, until a and b distribute.
func join(t *testing.T, n *network) {
	t.Helper()
	for range 12 {
		for _, ifindex := range []uint32{1, 2} {
			if p := lastPDU(t, n, ifindex); p != nil {
				// The partner is in sync as soon as we are, and collects as soon as we do.
				s := lacp.Activity | lacp.ShortTimeout | lacp.Aggregation |
					p.Actor.State&(lacp.Synchronization|lacp.Collecting|lacp.Distributing)
				n.put(ifindex, them.MAC, lacp.PDU{Actor: lacp.Info{System: them, Key: 5,
					Port: lacp.Port{Number: uint16(ifindex)}, State: s}, Partner: p.Actor}.Encode())
			}
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
	}
}

func used(l *LACP) string {
	s, _ := l.Status(lagID)
	var names []string
	for _, m := range s.Members {
		if m.Usable {
			names = append(names, m.Name)
		}
	}
	return strings.Join(names, " ")
}

func TestLACP_TheLifeOfALAG(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, reports := newNetwork(), &collected[LACPReport]{}
		l := StartLACP(n.open, quiet, reports.take)
		want := oneLAG()
		l.Want([]LAG{want})
		join(t, n)
		if got := used(l); got != "a b" {
			t.Fatalf("used %q", got)
		}
		all := reports.list()
		last := all[len(all)-1]
		if last.Status.Partner == nil || *last.Status.Partner != them || last.Devices["b"] != 2 ||
			len(last.Snapshot.Members) != 2 {
			t.Errorf("last report %+v", last)
		}
		// Setting the same configuration again is no change: nothing is reported.
		before := len(reports.list())
		l.Want([]LAG{want})
		synctest.Wait()
		if now := len(reports.list()); now != before {
			t.Errorf("%d reports for nothing", now-before)
		}
		// A process that ends sends one more PDU, and the next one continues from the snapshot.
		time.Sleep(time.Second)
		lastPDU(t, n, 1)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if p := lastPDU(t, n, 1); p == nil || p.Actor.State&lacp.Distributing == 0 {
			t.Errorf("at its end: %+v", p)
		}
		again := StartLACP(n.open, quiet, reports.take)
		want.Saved = last.Snapshot
		again.Want([]LAG{want})
		synctest.Wait()
		if got := used(again); got != "a b" {
			t.Errorf("after a restart used are %q", got)
		}
		// A LAG that is removed from the plan says goodbye.
		time.Sleep(2 * time.Second)
		again.Want(nil)
		synctest.Wait()
		if p := lastPDU(t, n, 2); p == nil || p.Actor.State&(lacp.Synchronization|lacp.Aggregation) != 0 {
			t.Errorf("goodbye: %+v", p)
		}
		if _, ok := again.Status(lagID); ok || n.socket(1) != nil {
			t.Error("it is still there")
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestLACP_DevicesThatChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		l := StartLACP(n.open, quiet, func([]LACPReport) {})
		defer l.Close()
		want := oneLAG()
		l.Want([]LAG{want})
		join(t, n)
		// Another device of the same uplink is another link.
		want.Devices = map[string]Uplink{"a": want.Devices["a"], "b": {Ifindex: 3, MAC: plan.MAC{2, 0, 0, 0, 0, 3},
			Up: true}}
		l.Want([]LAG{want})
		synctest.Wait()
		if got := used(l); got != "a" || n.socket(2) != nil || n.socket(3) == nil {
			t.Errorf("with another device used are %q", got)
		}
		// A member whose socket cannot be opened is out of use, with the reason, until it can be opened.
		n.broken[4] = errors.New("no sockets today")
		want.Devices = map[string]Uplink{"a": want.Devices["a"], "b": {Ifindex: 4, Up: true}}
		l.Want([]LAG{want})
		synctest.Wait()
		if s, _ := l.Status(lagID); s.Members[1].Reason.Text() != "lacp: no sockets today" || s.Members[1].Usable {
			t.Errorf("%+v", s.Members[1])
		}
		delete(n.broken, 4)
		l.Want([]LAG{want})
		synctest.Wait()
		if s, _ := l.Status(lagID); s.Members[1].Reason.Text() != "lacp: partner silent" &&
			s.Members[1].Reason.Text() != "lacp: no partner yet" {
			t.Errorf("%+v", s.Members[1])
		}
	})
}

// A peer that floods costs next to nothing, a malformed frame is counted, and a device that goes down ends nothing.
func TestLACP_HostilePeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		l := StartLACP(n.open, quiet, func([]LACPReport) {})
		defer l.Close()
		l.Want([]LAG{oneLAG()})
		synctest.Wait()
		n.socket(1).failing <- unix.ENETDOWN
		began := time.Now()
		for range 10 * mostPerSecond {
			n.put(1, them.MAC, []byte{1})
		}
		synctest.Wait()
		if took := time.Since(began); took < 9*time.Second {
			t.Errorf("%d frames were taken within %s", 10*mostPerSecond, took)
		}
		if s, _ := l.Status(lagID); s.Members[0].Counters.Bad != 10*mostPerSecond || s.Members[1].Counters.Bad != 0 {
			t.Errorf("%+v", s.Members)
		}
		n.put(1, them.MAC, []byte{10, 0, 0}) // OAM
		synctest.Wait()
		if s, _ := l.Status(lagID); s.Members[0].Counters.Bad != 10*mostPerSecond {
			t.Errorf("OAM counts as bad: %+v", s.Members[0])
		}
	})
}
