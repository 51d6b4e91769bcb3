package linkproto

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"heddle/internal/plan"
	"heddle/internal/uplinks/lldp"
)

func uplinkID(name string) plan.PortID { return plan.PortID{Switch: "lab", Name: name} }

func pdu(port string, ttl uint16) lldp.PDU {
	return lldp.PDU{Chassis: lldp.ChassisID{Subtype: lldp.ChassisMAC, Value: []byte{2, 0, 0, 0, 0, 9}},
		Port: lldp.PortID{Subtype: lldp.PortIfName, Value: []byte(port)}, TTL: ttl}
}

func payload(t *testing.T, p lldp.PDU) []byte {
	t.Helper()
	b, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// said returns, for what was sent on a device, the seconds since began and the TTLs.
func said(t *testing.T, n *network, ifindex uint32, began time.Time) string {
	t.Helper()
	var out []string
	for _, f := range n.take(ifindex) {
		p, err := lldp.Decode(f.bytes[14:])
		if err != nil || [6]byte(f.bytes) != lldp.Groups[0] {
			t.Fatalf("sent %x: %v", f.bytes, err)
		}
		out = append(out, fmt.Sprintf("%d:%d", int(f.at.Sub(began).Seconds()), p.TTL))
	}
	return fmt.Sprint(out)
}

func TestLLDP_AdvertisesAndSaysGoodbye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, began := newNetwork(), time.Now()
		l := StartLLDP(n.open, quiet, func([]LLDPReport) {})
		own := pdu("own", lldp.TTL)
		port := LLDPPort{ID: uplinkID("up0"), Device: Uplink{Ifindex: 1, Up: true}, Listen: true, Advertise: &own}
		l.Want([]LLDPPort{port})
		time.Sleep(70*time.Second + time.Millisecond)
		if got, want := said(t, n, 1, began), "[0:120 1:120 2:120 3:120 33:120 63:120]"; got != want {
			t.Errorf("said %s, want %s", got, want)
		}
		n.put(1, plan.MAC{2}, payload(t, pdu("new", 120))) // a new neighbour soon receives an advertisement
		time.Sleep(10 * time.Second)
		if got, want := said(t, n, 1, began), "[71:120 72:120 73:120 74:120]"; got != want {
			t.Errorf("said %s, want %s", got, want)
		}
		changed := own
		changed.SystemName = "renamed"
		port.Advertise = &changed
		l.Want([]LLDPPort{port})
		time.Sleep(1500 * time.Millisecond)
		if got, want := said(t, n, 1, began), "[81:120]"; got != want {
			t.Errorf("a change is told: %s, want %s", got, want)
		}
		time.Sleep(5 * time.Second)
		said(t, n, 1, began)
		port.Advertise = nil
		l.Want([]LLDPPort{port})
		synctest.Wait()
		if got, want := said(t, n, 1, began), "[86:0]"; got != want {
			t.Errorf("withdrawn: %s, want %s", got, want)
		}
		port.Advertise = &own
		l.Want([]LLDPPort{port})
		time.Sleep(10 * time.Second)
		said(t, n, 1, began)
		l.Want(nil)
		synctest.Wait()
		if got, want := said(t, n, 1, began), "[96:0]"; got != want {
			t.Errorf("no longer wanted: %s, want %s", got, want)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if got := said(t, n, 1, began); got != "[]" {
			t.Errorf("at the end: %s", got)
		}
	})
}

func TestLLDP_NeighboursComeChangeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, reports := newNetwork(), &collected[LLDPReport]{}
		l := StartLLDP(n.open, quiet, reports.take)
		defer l.Close()
		port := LLDPPort{ID: uplinkID("up0"), Device: Uplink{Ifindex: 1, Up: true}, Listen: true}
		deaf := LLDPPort{ID: uplinkID("up1"), Device: Uplink{Ifindex: 2, Up: true}}
		l.Want([]LLDPPort{port, deaf})
		synctest.Wait()
		named := pdu("2", 5)
		named.SystemName = "leaf"
		for _, p := range []lldp.PDU{pdu("1", 5), pdu("1", 5), pdu("2", 5), named, pdu("3", 100), pdu("4", 100),
			pdu("3", 0)} {
			n.put(1, plan.MAC{2}, payload(t, p))
			n.put(2, plan.MAC{2}, payload(t, p))
			synctest.Wait()
		}
		n.put(1, plan.MAC{2}, []byte{0xff})
		time.Sleep(6 * time.Second)
		synctest.Wait()
		s, _ := l.Status(port.ID)
		if len(s.Neighbours) != 1 || s.In != 7 || s.Bad != 1 || s.Out != 0 {
			t.Errorf("%+v", s)
		}
		if s, ok := l.Status(deaf.ID); !ok || s.In != 0 {
			t.Errorf("an uplink that does not listen: %+v", s)
		}
		port.Device.Up = false // the previous neighbour may be gone
		l.Want([]LLDPPort{port, deaf})
		synctest.Wait()
		var got string
		for _, r := range reports.list() {
			got += fmt.Sprintf("%s%s ", map[lldp.Change]string{lldp.New: "+", lldp.Updated: "~",
				lldp.Gone: "-"}[r.Change], r.Neighbour.PDU.Port)
		}
		if want := "+1 +2 ~2 +3 +4 -3 -1 -2 -4 "; got != want {
			t.Errorf("reports %q, want %q", got, want)
		}
	})
}

func TestLLDP_IsHeardOnADeviceThatTookAnothersIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		var told collected[LLDPReport]
		l := StartLLDP(n.open, quiet, told.take)
		port := LLDPPort{ID: uplinkID("up0"), Device: Uplink{Ifindex: 1, Up: true}, Listen: true}
		l.Want([]LLDPPort{port})
		synctest.Wait()
		first := n.socket(1)
		l.Want([]LLDPPort{port})
		synctest.Wait()
		if n.socket(1) != first {
			t.Error("a device that stays gets another socket")
		}
		first.gone.Store(true)
		l.Want([]LLDPPort{port})
		synctest.Wait()
		if n.socket(1) == first {
			t.Fatal("the socket of the device that is gone is still listened to")
		}
		n.put(1, plan.MAC{2}, payload(t, pdu("new", 120)))
		synctest.Wait()
		if got := told.list(); len(got) != 1 {
			t.Errorf("reports %v, want one neighbour", got)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}
