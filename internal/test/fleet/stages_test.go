package fleet

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
	"heddle/internal/test/testkit/realhost"
)

// newStagedFleet is three hosts with two guests each in the port group db.
func newStagedFleet(t *testing.T, controllers func(*fleet) []*realhost.Controller) (*fleet,
	[]*realhost.Controller) {
	t.Helper()
	f := newFleetSized(t, 3, ownConfig, "own1", "own2")
	all := controllers(f)
	for n, h := range f.hosts {
		all[0].Join(h.Host, fmt.Sprintf("esx%d", n), map[string]string{"rack": "a"})
	}
	if out := all[0].Define(fleetText); len(out.Hosts) != 3 || len(out.Waiting) > 0 {
		t.Fatalf("the definition: %+v", out)
	}
	for n := range f.hosts {
		f.connect(n, 4, "p-db", "db")
		f.connect(n, 5, "p-to", "db")
	}
	return f, all
}

// badText is fleetText with a port group that takes no frame of its guests: they send untagged.
func badText(vlan int) string {
	return strings.Replace(fleetText, "access: 20", fmt.Sprintf("trunk: [%d]", vlan), 1)
}

// withVLAN are the hosts whose ports in db have that VLAN.
func (f *fleet) withVLAN(vlan string) (names []string) {
	f.t.Helper()
	for n := range f.hosts {
		if f.vlan(n, "p-db") == vlan {
			names = append(names, fmt.Sprintf("esx%d", n))
		}
	}
	return names
}

// rolloutOf is a rollout as it stands.
func rolloutOf(c *realhost.Controller, id string) *api.Rollout {
	c.T.Helper()
	r, err := c.Rollout(c.T.Context(), id)
	if err != nil {
		c.T.Log(err)
		return &api.Rollout{}
	}
	return r
}

// typed runs a command of a page as a person would, in a directory.
func typed(c *realhost.Controller, dir, line string) (string, error) {
	heddle, _ := realhost.Programs(c.T)
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HEDDLE_CONTROLLER="+c.Socket(), "PATH="+filepath.Dir(heddle)+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// A change that drops the guests' traffic halts at stage one by itself, and says what it saw; taken back by itself, the
// host has the old version again. Then the commands of the how-to page do what it says.
func TestS102_ABadChangeStopsAtTheFirstHost(t *testing.T) {
	t.Parallel()
	f, all := newStagedFleet(t, func(f *fleet) []*realhost.Controller {
		f.controller.Start()
		return []*realhost.Controller{f.controller}
	})
	c, dir := all[0], t.TempDir()
	var streams []*cable.Stream
	for n := range f.hosts {
		streams = append(streams, f.stream(fmt.Sprintf("p-db@%d", n), fmt.Sprintf("p-to@%d", n), fleetMAC(n, 4),
			fleetMAC(n, 5)))
	}
	for name, vlan := range map[string]int{"bad.yaml": 200, "worse.yaml": 201} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(badText(vlan)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := typed(c, dir, "heddle definition apply -f bad.yaml --stages 1,100% --wait 3s --follow -m 'db trunk'")
	if err == nil || !strings.Contains(out, "dropped for vlan-not-allowed") || !strings.Contains(out, "has halted") {
		t.Fatalf("the bad change: %v: %s", err, out)
	}
	if got := f.withVLAN("access 20"); len(got) != 2 {
		t.Errorf("%v have the old version when it has halted: %s", got, out)
	}
	if out, err = typed(c, dir, "heddle definition apply -f worse.yaml"); err == nil ||
		!strings.Contains(out, "heddle rollout abort") {
		t.Errorf("another change meanwhile: %v: %s", err, out)
	}
	if out, err = typed(c, dir, "heddle definition apply -f bad.yaml"); err != nil ||
		!strings.Contains(out, "is halted") {
		t.Errorf("the same change again: %v: %s", err, out)
	}
	if out, err = typed(c, dir, "heddle definition apply -f worse.yaml --stages 1,100% --wait 3s --halt rollback "+
		"--supersede --follow"); err == nil || !strings.Contains(out, "is taken-back") {
		t.Errorf("the bad change, taken back: %v: %s", err, out)
	}
	c.Await("all hosts have the old version", func() bool { return len(f.withVLAN("access 20")) == 3 })
	for _, s := range streams { // a machine that is busy may make them slow on some hosts, which would be a finding
		s.Stop()
	}
	f.page(c, dir)
	if out, err = typed(c, dir, "heddle rollout list -o json"); err != nil {
		t.Fatal(err, out)
	}
	var list []api.Rollout
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	states := []api.RolloutState{}
	for _, r := range list {
		states = append(states, r.State)
	}
	if !slices.Equal(states, []api.RolloutState{api.RolloutDone, api.RolloutTakenBack, api.RolloutSuperseded}) {
		t.Errorf("the rollouts were %v", states)
	}
}

// page runs the commands of the how-to page, with the change that it tells of.
func (f *fleet) page(c *realhost.Controller, dir string) {
	f.t.Helper()
	text, err := os.ReadFile("../../../docs/how-to/many-hosts/change-in-stages.md")
	if err != nil {
		f.t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(text)) {
		command, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "    heddle ")
		if !ok {
			continue
		}
		lines++
		out, err := typed(c, dir, "heddle "+command)
		if err != nil {
			f.t.Fatalf("heddle %s: %v: %s", command, err, out)
		}
		if strings.HasPrefix(command, "definition show") { // the change is made in the file
			out, err = typed(c, dir, "sed -i 's/access: 20/access: 30/' fleet.yaml")
		}
		if err != nil || strings.Contains(command, "dry-run") && !strings.Contains(out, "stage 3 (100%)") {
			f.t.Fatalf("heddle %s: %v: %s", command, err, out)
		}
	}
	if got := f.withVLAN("access 30"); lines != 5 || len(got) != 3 {
		f.t.Errorf("after %d commands of the page %v have the change", lines, got)
	}
}

// The controller that drives a rollout is killed while hosts are watched: it stands still, another one goes on, and no
// host has what no revision describes. With the change done the hosts forward by it.
func TestS102_AnotherControllerGoesOn(t *testing.T) {
	testkit.Long(t, "kills the driver of stages; TestS102_ABadChangeStopsAtTheFirstHost has stages")
	t.Parallel()
	f, all := newStagedFleet(t, func(f *fleet) []*realhost.Controller {
		list := f.controllers()
		return list[:]
	})
	id := all[0].Stages(api.Define{File: "fleet.yaml", Content: dbVLAN(30), Message: "another goes on",
		Stages: &api.InStages{Stages: "1,100%", Wait: 5e9, Watch: 1e9}})
	all[0].Await("the first stage has begun", func() bool { return len(f.withVLAN("access 30")) == 1 })
	driver := slices.IndexFunc(all, func(c *realhost.Controller) bool { return c.Name == rolloutOf(all[0], id).Driver })
	if driver < 0 {
		t.Fatalf("nobody drives it: %+v", rolloutOf(all[0], id))
	}
	all[driver].End(syscall.SIGKILL)
	if got := f.withVLAN("access 20"); len(got) != 2 {
		t.Errorf("%v have the old version", got)
	}
	c := all[(driver+1)%len(all)]
	c.Await("another one goes on, and ends it", func() bool {
		now := rolloutOf(c, id)
		if now.State == api.RolloutHalted { // its hosts were without a controller for long, on a machine that is busy
			t.Log(now.Found)
			_, err := c.ResumeRollout(t.Context(), id, false)
			return err != nil && t.Failed()
		}
		return now.State == api.RolloutDone
	})
	c.Await("all hosts have the change", func() bool { return len(f.withVLAN("access 30")) == 3 })
	all[driver].Start()
}
