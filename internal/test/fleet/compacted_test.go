package fleet

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/realhost"
)

// A host and a controller are away while the definition changes and etcd forgets how. The controller, whose watch can't
// go on where it was, reads the state anew; the host, of which it has no revision, is handed what is true now.
func TestS103_AHostAndAControllerAreAwayWhileTheHistoryIsDropped(t *testing.T) {
	testkit.Long(t, "TestS103_AFleetGoesOnWhileItsControllerIsAway has hosts without a controller")
	t.Parallel()
	f := newFleetSized(t, 1, ownConfig, "own1", "own2")
	carried := f.stream("p-own1@0", "p-own2@0", fleetMAC(0, 1), fleetMAC(0, 2))
	dir := t.TempDir()
	etcd := newEtcd(t, f.network, dir)
	other := realhost.NewController(t, f.network, "10.0.0.100:7421")
	f.controller.Args, other.Args, other.Name = outsideFlags(dir, "/a"), outsideFlags(dir, "/a"), "controller2"
	f.controller.Start()
	token := strings.TrimSpace(f.controller.Must("token"))
	other.Must(append([]string{"join", f.controller.Address, "--token", token}, other.Args...)...)
	other.Start()
	f.controller.Join(f.hosts[0].Host, "esx0", map[string]string{"rack": "a"})
	f.controller.Define(fleetText)
	f.connect(0, 3, "p-db", "db")
	f.hosts[0].Await("it knows both controllers", func() bool {
		m, err := f.hosts[0].Membership(t.Context())
		return err == nil && len(m.Controllers) == 2
	})

	f.hosts[0].End(syscall.SIGKILL)
	thaw := other.Freeze()
	for i := range 20 {
		f.define(strings.Replace(fleetText, "access: 20", fmt.Sprint("access: ", 100+i), 1))
	}
	// By force: where the host was at the frozen controller, this one does not know what it uses.
	removed, err := f.controller.Defines(api.Define{File: "fleet.yaml", Force: true,
		Content: strings.Replace(fleetText, "  - {name: spare, vlan: {access: 40}}\n", "", 1)})
	if err != nil {
		t.Fatal(err)
	}
	gone := removed.Revision
	last := f.define(strings.Replace(fleetText, "access: 20", "access: 30", 1))
	if err := askEtcd(t, f.network, dir, "kv/compaction", fmt.Sprintf(`{"revision": %d, "physical": true}`, last),
		nil); err != nil {
		t.Fatal(err)
	}
	if askEtcd(t, f.network, dir, "kv/range", fmt.Sprintf(`{"key": "AA==", "revision": %d}`, gone), nil) == nil {
		t.Fatal("etcd has the history still: this test is void")
	}
	kill(etcd) // the frozen controller's watch ends with it
	startEtcd(t, f.network, dir)
	f.controller.End(syscall.SIGKILL)
	thaw()

	f.hosts[0].Start("")
	other.Await("the host is up there", func() bool {
		return other.StateOf("esx0") == api.HostUp && on(other, "esx0") == other.Name
	})
	f.hosts[0].Await("the host has the last version", func() bool { return f.vlan(0, "p-db") == "access 30" })
	f.has("the definition at the controller that was away", other.Certain().Content, "access: 30", "name: spare")
	if out := other.Define(fleetText); len(out.Hosts) != 1 || len(out.Waiting) > 0 {
		t.Errorf("a change at that controller: %+v", out)
	}
	if got := f.vlan(0, "p-db"); got != "access 20" {
		t.Errorf("the port has VLAN %s", got)
	}
	f.controller.Start()
	f.controller.Await("the first one has that too", func() bool {
		d, err := f.controller.Definition(t.Context())
		return err == nil && strings.Contains(d.Content, "access: 20") && f.controller.StateOf("esx0") == api.HostUp
	})
	f.whole("on the host's own switch", carried)
}
