package linkproto

import (
	"testing"
	"testing/synctest"
	"time"

	"heddle/internal/plan"
	"heddle/internal/uplinks/lacp"
)

// bundled is an LACPDU of a device's bundle.
func bundled(key uint16) []byte {
	return lacp.PDU{Actor: lacp.Info{System: them, Key: key, Port: lacp.Port{Number: 1},
		State: lacp.Activity | lacp.Aggregation}}.Encode()
}

func TestPartners_AreHeardWithoutALAG(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, reports, id := newNetwork(), &collected[HeardReport[Partner]]{}, uplinkID("up0")
		p := StartPartners(n.open, quiet, reports.take)
		own := Own{plan.MAC{2, 0, 0, 0, 0, 7}: true}
		p.Own(own)
		uplink := map[plan.PortID]Uplink{id: {Ifindex: 1, Up: true}}
		p.Want(uplink)
		synctest.Wait()
		none := func(when string) {
			t.Helper()
			synctest.Wait()
			if who, ok := p.Heard(id); ok {
				t.Errorf("%s: %+v", when, who)
			}
		}
		none("before the first LACPDU")
		n.put(1, plan.MAC{2, 0, 0, 0, 0, 7}, bundled(5))
		none("an LACPDU of this host's own")
		n.put(1, them.MAC, []byte{lacp.SubtypeLACP, 1, 0})
		none("a malformed frame")

		began := time.Now()
		for range 4 { // every 30 s, as the slow timer has it
			n.put(1, them.MAC, bundled(5))
			time.Sleep(30 * time.Second)
		}
		want := Heard[Partner]{What: Partner{System: them, Key: 5}, Since: began, At: began.Add(90 * time.Second)}
		if who, ok := p.Heard(id); !ok || who != want {
			t.Errorf("partner %+v, want %+v", who, want)
		}
		n.put(1, them.MAC, bundled(6))
		synctest.Wait()
		if who, _ := p.Heard(id); who.What.Key != 6 || who.Since != began.Add(2*time.Minute) {
			t.Errorf("another bundle: %+v", who)
		}
		time.Sleep(partnerTimeout)
		none("after silence")
		var told []string
		for _, r := range reports.list() {
			told = append(told, map[bool]string{false: "+", true: "-"}[r.Gone]+string(rune('0'+r.Heard.What.Key)))
		}
		if len(told) != 3 || told[0] != "+5" || told[1] != "+6" || told[2] != "-6" {
			t.Errorf("reports %q, want +5 +6 -6", told)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
}

// What was heard belongs to the link: it goes with the carrier, with the device, and when the uplink gets into a LAG.
func TestPartners_AreForgottenWithTheirLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, id := newNetwork(), uplinkID("up0")
		p := StartPartners(n.open, quiet, func([]HeardReport[Partner]) {})
		at := func(u Uplink) map[plan.PortID]Uplink { return map[plan.PortID]Uplink{id: u} }
		for _, then := range []map[plan.PortID]Uplink{at(Uplink{Ifindex: 1}), at(Uplink{Ifindex: 2, Up: true}), {}} {
			p.Want(at(Uplink{Ifindex: 1, Up: true}))
			synctest.Wait()
			n.put(1, them.MAC, bundled(5))
			synctest.Wait()
			if _, ok := p.Heard(id); !ok {
				t.Fatal("the partner is not heard")
			}
			p.Want(then)
			synctest.Wait()
			if who, ok := p.Heard(id); ok {
				t.Errorf("%v: still %+v", then, who)
			}
		}
		if n.socket(1) != nil {
			t.Error("the socket is still open")
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
}
