package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/realhost"
)

// upgrading is a cluster on which the commands of the page are run.
type upgrading struct {
	*fleet
	all [3]*realhost.Controller
	dir string
}

// The page of upgrades is done as it says, with the version of tomorrow, on three controllers and two hosts between
// whose guests frames pass all the while: each command between the steps says that all is well, and no frame is lost.
func TestS103_AFleetIsUpgradedAsThePageSays(t *testing.T) {
	testkit.Long(t, "builds a later version, and upgrades a fleet")
	t.Parallel()
	text, err := os.ReadFile("../../../docs/how-to/many-hosts/upgrade-a-fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	u := &upgrading{fleet: newFleet(t), dir: t.TempDir()}
	u.all = u.controllers()
	for n, h := range u.hosts {
		u.all[0].Join(h.Host, fmt.Sprintf("esx%d", n), map[string]string{"rack": "a"})
	}
	u.all[0].Define(fleetText)
	u.connect(0, 3, "p-web", "web")
	u.connect(1, 3, "p-web", "web")
	between := u.stream("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))
	u.settled()
	var first, last string
	steps := regexp.MustCompile(`(?m)^(controller\d|esx\d)# (.*)$`).FindAllStringSubmatch(string(text), -1)
	if len(steps) < 25 {
		t.Fatalf("the page has %d commands", len(steps))
	}
	upgraded := []string{}
	for _, s := range steps {
		if strings.HasPrefix(s[2], "apt install ") {
			u.upgrade(s[1])
			upgraded = append(upgraded, s[1])
			u.settled()
			continue
		}
		if last = u.typed(s[2]); first == "" && s[2] == "heddle doctor" {
			first = last
		}
	}
	if !slices.Equal(upgraded, []string{"controller2", "controller3", "controller1", "esx0", "esx1"}) {
		t.Errorf("the page upgrades %v", upgraded)
	}
	if first != last {
		t.Errorf("doctor said before\n%s\nand says now\n%s", first, last)
	}
	// All are of tomorrow: a field that only it knows is taken, and active.
	if out := u.all[0].Define(tomorrowText); len(out.Waiting)+len(out.Unknown) > 0 {
		t.Errorf("%+v", out)
	}
	u.whole("between the hosts", between)
}

// upgrade exchanges the version of a machine.
func (u *upgrading) upgrade(machine string) {
	u.t.Helper()
	for _, c := range u.all {
		if c.Name == machine {
			c.End(syscall.SIGTERM)
			c.Later()
			c.Start()
			return
		}
	}
	for n, h := range u.hosts {
		if machine == fmt.Sprintf("esx%d", n) {
			h.End(syscall.SIGTERM)
			h.Later()
			h.Start("")
			h.Up("p-web", "uplink1")
			return
		}
	}
	u.t.Fatalf("there is no machine %s", machine)
}

// settled waits as the reader does: all controllers have a vote and answer, and all hosts are up.
func (u *upgrading) settled() {
	u.t.Helper()
	c := u.all[0]
	c.Await("all controllers and hosts are there", func() bool {
		list, err := c.Controllers(u.t.Context())
		if err != nil || len(list.Controllers) != 3 {
			return false
		}
		for _, k := range list.Controllers {
			if k.State != "up" || k.Role != "voter" && k.Role != "leader" {
				return false
			}
		}
		return c.StateOf("esx0") == api.HostUp && c.StateOf("esx1") == api.HostUp
	})
}

// typed runs a command of the page at the first controller. Commands whose exit status says that all is well have to
// say so; what passes is waited for.
func (u *upgrading) typed(command string) string {
	u.t.Helper()
	c := u.all[0]
	words := strings.Fields(command)
	for i, w := range words {
		if w == "before.yaml" || w == "before.db" {
			words[i] = filepath.Join(u.dir, w)
		}
	}
	if words[0] == "heddle-controller" {
		return c.Must(words[1:]...)
	}
	free := words[1] == "status" || words[1] == "doctor" // what is wrong with a machine of tests is no matter here
	end := time.Now().Add(realhost.Patience)
	for {
		out, errs, status := c.Heddle(words[1:]...)
		want := 0
		if words[1] == "host" && words[2] == "drain" {
			want = 1 // a guest runs there
		}
		if status == want || free && status <= 1 {
			return out
		}
		if time.Now().After(end) {
			u.t.Fatalf("%s: status %d: %s%s", command, status, out, errs)
		}
		time.Sleep(realhost.Poll)
	}
}
