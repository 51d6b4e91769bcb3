package rpc

import (
	"strings"
	"testing"

	"heddle/internal/controller/inventory"
	"heddle/internal/platform/peers"
)

// A controller that starts again as it was has nothing to write: it starts where etcd takes no writes.
func TestS103_AControllerThatStartsAgainAsItWasWritesNothing(t *testing.T) {
	c := newController(t)
	self := peers.Controller{ID: c.id, Name: c.id, Address: c.address,
		Kinds: strings.Join(inventory.KindNames(), " ")}
	before, r := c.disk.Revision(), peers.New(c.disk) // before it runs, as in the program
	if err := r.Announce(t.Context(), self); err != nil {
		t.Fatal(err)
	}
	if now := c.disk.Revision(); now != before {
		t.Errorf("revision %d, before %d", now, before)
	}
	self.Version = "next"
	if err := r.Announce(t.Context(), self); err != nil {
		t.Fatal(err)
	}
	if list := c.Cluster(); len(list) != 1 || list[0].Version != "next" || c.disk.Revision() == before {
		t.Errorf("after another version: %+v", list)
	}
}
