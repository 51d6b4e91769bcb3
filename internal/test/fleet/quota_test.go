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

// bulky is fleetText with the entries of many hosts that are not there, all of them other ones in each round. Twenty
// rounds are more than the least quota.
func bulky(round int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%shosts:\n", strings.Replace(fleetText, "access: 20", fmt.Sprint("access: ", 100+round), 1))
	for h := range absent {
		fmt.Fprintf(&b, "- name: absent%d\n  labels:\n", h)
		for l := range 20 {
			fmt.Fprintf(&b, "    label%d: %s\n", l, strings.Repeat(fmt.Sprintf("v%d-%d-%d.", round, h, l), 5))
		}
	}
	return b.String()
}

// absent is how many hosts these are.
const absent = 400

// mostRounds is how many rounds have reached the quota in any case.
const mostRounds = 60

// fillUp changes the definition from a round on until a change is refused. It returns the round that was refused, and
// why.
func fillUp(t *testing.T, c *realhost.Controller, from int) (refused int, why string) {
	t.Helper()
	for round, tries := from, 0; tries < mostRounds; tries++ {
		_, err := c.Fleet.Define(t.Context(), api.Define{File: "fleet.yaml", Content: bulky(round)})
		switch {
		case err == nil:
			round++
		case strings.Contains(err.Error(), "quota"):
			return round, err.Error()
		default: // a slow disk
			t.Log(err)
		}
	}
	t.Fatal("the quota is never reached")
	return 0, ""
}

// inRound makes sure that the definition is that of a round, whole.
func inRound(t *testing.T, c *realhost.Controller, round int) {
	t.Helper()
	d, err := c.Definition(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(d.Content, fmt.Sprintf("v%d-", round)); got != absent*20*5 ||
		!strings.Contains(d.Content, fmt.Sprint("access: ", 100+round)) {
		t.Errorf("the definition is not that of round %d: it has %d parts of its labels", round, got)
	}
}

// A controller whose database reaches its quota refuses changes and says what to do; what it acknowledged is there, and
// hosts go on. It makes space by itself, also when it is killed meanwhile, and takes changes again.
func TestS103_AControllerWhoseQuotaIsReached(t *testing.T) {
	testkit.Long(t, "fills a database; the package of the store does so with a smaller one")
	t.Parallel()
	f := newFleetSized(t, 1, ownConfig, "own1", "own2")
	carried := f.stream("p-own1@0", "p-own2@0", fleetMAC(0, 1), fleetMAC(0, 2))
	f.controller.Args = []string{"--etcd-quota", "16MiB"}
	f.controller.Start()
	f.controller.Join(f.hosts[0].Host, "esx0", map[string]string{"rack": "a"})
	f.controller.Define(fleetText)
	f.connect(0, 3, "p-db", "db")
	out, _, _ := f.controller.Heddle("status", "--controller", f.controller.Socket())
	f.has("the status", out, "in use of 16.0 MiB")

	round := 0
	for _, killed := range []bool{false, true} {
		refused, why := fillUp(t, f.controller, round)
		f.has("the refusal", why, "reached its quota", "makes space by itself", "larger --etcd-quota", "Hosts go on")
		inRound(t, f.controller, refused-1)
		f.connect(0, refused, fmt.Sprint("p-web", refused), "web")
		if killed {
			f.controller.End(syscall.SIGKILL)
			f.controller.Start()
			inRound(t, f.controller, refused-1)
		}
		f.controller.Await("there is space again", func() bool {
			_, err := f.controller.Fleet.Define(t.Context(), api.Define{File: "fleet.yaml", Content: bulky(refused)})
			return err == nil
		})
		inRound(t, f.controller, refused)
		f.inState("esx0", api.HostUp)
		round = refused + 1
	}
	if !strings.Contains(f.controller.Log(), "space was made") {
		t.Error("the log does not say that space was made")
	}
	if out := f.controller.Define(fleetText); len(out.Waiting) > 0 {
		t.Errorf("a change when there is space: %+v", out)
	}
	if got := f.vlan(0, "p-db"); got != "access 20" {
		t.Errorf("the port has VLAN %s", got)
	}
	f.whole("on the host's own switch", carried)
}

// A quota of somebody else's etcd: the refusal says that they make space, what was acknowledged is there, and changes
// are taken once they have.
func TestS103_AnEtcdOfOthersWhoseQuotaIsReached(t *testing.T) {
	testkit.Long(t, "fills a database; the package of the store does so with a smaller one")
	t.Parallel()
	testkit.Root(t)
	ns, dir := testkit.NS(t, "machine"), t.TempDir()
	etcd := newEtcd(t, ns, dir, "--quota-backend-bytes", "16777216")
	c := realhost.NewController(t, ns, "127.0.0.1:7411")
	c.Args = outsideFlags(dir, "/a")
	c.Start()
	refused, why := fillUp(t, c, 0)
	for _, part := range []string{"reached its quota", "who runs that etcd", "--quota-backend-bytes", "alarm disarm"} {
		if !strings.Contains(why, part) {
			t.Errorf("the refusal is %q, without %q", why, part)
		}
	}
	inRound(t, c, refused-1)

	kill(etcd)
	startEtcd(t, ns, dir)
	var alarms struct{ Alarms []struct{ MemberID string } }
	c.Await("etcd answers", func() bool {
		return askEtcd(t, ns, dir, "maintenance/alarm", `{"action": "GET"}`, &alarms) == nil && len(alarms.Alarms) == 1
	})
	err := askEtcd(t, ns, dir, "maintenance/alarm", fmt.Sprintf(`{"action": "DEACTIVATE", "alarm": "NOSPACE", "memberID": %q}`,
		alarms.Alarms[0].MemberID), nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Await("changes are taken again", func() bool {
		_, err := c.Fleet.Define(t.Context(), api.Define{File: "fleet.yaml", Content: bulky(refused)})
		return err == nil
	})
	inRound(t, c, refused)
}
