package state

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/spec"
)

// A port's name says nothing about whose it is: a VM that comes under the name of another one does not get its static
// port, and the other one keeps it.
func TestS77_AnAdapterIsNotConnectedByTheNameOfAnothersPort(t *testing.T) {
	port := func(vm, id string) NIC {
		return NIC{VM: vm, Adapter: "net0", Port: "vm/eth0", Switch: "dvs", PortGroup: "db", ID: id, Bound: id != ""}
	}
	before, now, nobody := port("1", "33"), port("2", "34"), port("3", "")
	s := State{NICs: []NIC{before, nobody, now},
		Ports: []spec.Port{{Name: "vm/eth0", Switch: "dvs", PortGroup: "db"}}}
	s.NameIs("vm/eth0", &now)
	if of := s.NICOf("vm/eth0"); of == nil || of.VM != now.VM {
		t.Errorf("the port is that of %+v", of)
	}
	before.Port = ""
	if diff := cmp.Diff([]NIC{before, now}, s.NICs); diff != "" || s.Connected(&before) {
		t.Errorf("the adapters: %s", diff)
	}
	s.NameIs("vm/eth0", nil)
	if of := s.NICOf("vm/eth0"); of != nil {
		t.Errorf("a port of nobody is that of %+v", of)
	}
}
