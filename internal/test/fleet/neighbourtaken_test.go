package fleet

import (
	"bytes"
	"slices"
	"testing"

	"heddle/internal/plan"
	"heddle/internal/test/testkit/cable"
)

// TestS194_WhoHasTakenAnAddressOverTellsAll: a guest has an address that another MAC had until now, and asks for a
// neighbour whom its host knows. All hosts hear the question, so that nobody sends to the former MAC any longer; the
// next one is answered by the asker's host.
func TestS194_WhoHasTakenAnAddressOverTellsAll(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		t.Run(map[bool]string{false: "ARP", true: "ND"}[v6], func(t *testing.T) {
			t.Parallel()
			r := &neighbourRig{newOverlayRig(t, false, "web"), v6}
			asker, owner, end := station{cable.MAC(2), r.at(1).ip}, r.at(11), r.guests[0][1]
			r.everywhere(r.guests[0][0], r.announces(r.at(1), asker.ip), "S85: an announcement passes")
			r.everywhere(r.guests[1][0], r.announces(owner, owner.ip), "S85: an announcement passes")
			ask := r.asks(asker, false, owner.ip)
			end.Send(ask)
			for _, e := range []*cable.End{r.guests[1][0], r.kernel} {
				e.Expect(ask, "S194: the question tells all who has the asker's address now")
			}
			end.Send(ask)
			end.Expect(r.answers(asker, owner.mac, owner.ip), "S85: the answer to the next question")
			marker := cable.Frame(cable.Broadcast(), asker.mac, 0, "after the questions")
			end.Send(marker)
			for _, e := range []*cable.End{r.guests[1][0], r.kernel} {
				if slices.ContainsFunc(all(e, marker), func(f []byte) bool { return bytes.Equal(f, ask) }) {
					t.Error("S85: the second question has left the host")
				}
			}
			list := r.hosts[1].listed("--address", asker.ip.String()).Neighbours
			if len(list) != 1 || list[0].MAC != plan.MAC(asker.mac).String() {
				t.Errorf("S194: the other host shows %+v", list)
			}
		})
	}
}
