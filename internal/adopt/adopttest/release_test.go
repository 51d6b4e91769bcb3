package adopttest

import (
	"testing"
)

func TestS81_DownMovesTheHostsAddressesBack(t *testing.T) {
	e := newEstate(t)
	before := e.settled()
	s := e.stream("203.0.113.9")
	if err := e.Heddle("host-port", "adopt", "eth0"); err != nil {
		t.Fatal(err)
	}
	if err := e.Heddle("host-port", "confirm"); err != nil {
		t.Fatal(err)
	}
	if err := e.Heddle("down"); err != nil {
		t.Fatal(err)
	}
	e.reaches()
	e.goesOn(s, "after down")
	e.end(s)
	e.Start("")
	e.up()
	e.restored(before, "down, and started again")
}
