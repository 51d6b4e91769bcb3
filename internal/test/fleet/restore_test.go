package fleet

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// lateText is portsText with port groups that a snapshot from before lacks.
var lateText = strings.Replace(portsText, "templates:", "  - {name: late, vlan: {access: 50}}\n"+
	"  - {name: lately, vlan: {access: 60}, binding: static, ports: {number: 2}}\ntemplates:", 1)

// After a restore the hosts, which have seen a later state, take the restored one. What was bound since goes on, is
// bound again where its port group is there, and is named where it is not, until the definition has it again.
func TestS103_ARestoreLosesNothingThatWasBoundSince(t *testing.T) {
	t.Parallel()
	f := newPortFleet(t)
	before := f.mustStartVM(0, 3, "p-a", "fixed")
	file := filepath.Join(t.TempDir(), "heddle.db")
	f.controller.Must("snapshot", file)
	f.controller.Define(lateText)
	f.mustStartVM(1, 4, "p-b", "fixed")
	f.mustStartVM(1, 5, "p-c", "lately")
	grown := map[string]bool{}
	for vm := 6; vm < 9; vm++ {
		grown[f.mustStartVM(vm%2, vm, fmt.Sprintf("p-%d", vm), "grows").PortID] = true
	}
	for n := range f.hosts {
		f.connect(n, 10, "p-late", "late")
	}
	since, err := f.hosts[0].Membership(t.Context())
	if err != nil || len(grown) != 3 {
		t.Fatalf("%+v, %v: %v", since, err, grown)
	}
	late := f.stream("p-late@0", "p-late@1", fleetMAC(0, 10), fleetMAC(1, 10))

	f.controller.End(syscall.SIGTERM)
	f.controller.Must("restore", file)
	f.controller.Start()
	f.controller.Must("confirm", "--all")
	f.keeps(0, 0, "dvs/late", "1 port (p-late)")
	f.keeps(1, 0, "dvs/late", "1 port (p-late)")
	f.keeps(1, 0, "dvs/lately", "1 port (p-c)")
	f.static("fixed", "p-a on esx0 up", "p-b on esx1 up")
	if p := f.port(0, "p-a"); p.PortID != before.PortID || p.Conflict != "" {
		t.Errorf("the port from before has number %q and conflict %q, it was %s", p.PortID, p.Conflict, before.PortID)
	}
	for vm := 6; vm < 9; vm++ {
		f.conflict(vm%2, fmt.Sprintf("p-%d", vm), "")
	}
	f.static("grows", "p-6 on esx0 up", "p-7 on esx1 up", "p-8 on esx0 up", "free", "free", "free", "free", "free",
		"free")
	if m, err := f.hosts[0].Membership(t.Context()); err != nil || m.Epoch <= since.Epoch {
		t.Errorf("after the restore the host is in epoch %d, before in %d (%v)", m.Epoch, since.Epoch, err)
	}

	f.controller.Define(lateText)
	for n := range f.hosts {
		f.follows(n)
	}
	f.static("lately", "p-c on esx1 up", "free")
	f.conflict(1, "p-c", "")
	f.whole("in a port group that the restored state lacked", late)
}
