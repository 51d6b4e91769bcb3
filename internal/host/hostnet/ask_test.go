package hostnet

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// A neighbour that has answered is asked again: if it was reachable a moment ago, that does not show that it is now.
func TestS81_ANeighbourIsAskedAnew(t *testing.T) {
	r := newRig(t)
	r.run("ip address add 192.0.2.10/24 dev eth0")
	if _, err := r.far.Output("ip", "address", "add", "192.0.2.1/24", "dev", "eth0"); err != nil {
		t.Fatal(err)
	}
	gateway := netip.MustParseAddr("192.0.2.1")
	await := func(why string, want bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			var all []Neighbour
			r.in(func() (err error) { all, err = Net{}.Neighbours(r.a); return err })
			if slices.ContainsFunc(all, func(n Neighbour) bool { return n.Address == gateway && n.Reachable }) == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %+v", why, all)
			}
		}
	}
	ask := func() { r.in(func() error { return Net{}.Ask(r.a, gateway) }) }
	ask()
	await("it answers", true)
	ask()
	await("it answers again", true)
	if _, err := r.far.Output("ip", "address", "del", "192.0.2.1/24", "dev", "eth0"); err != nil {
		t.Fatal(err)
	}
	ask()
	await("it is away, and counts as reachable", false)
}
