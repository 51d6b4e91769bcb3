package fleet

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/realhost"
)

// changing is a fleet of which a person changes the definition, by commands.
type changing struct {
	*fleet
	c   *realhost.Controller
	dir string
}

// types runs a command that has to work.
func (g *changing) types(line string) string {
	g.t.Helper()
	out, err := typed(g.c, g.dir, line)
	if err != nil {
		g.t.Fatalf("%s: %v: %s", line, err, out)
	}
	return out
}

// newest is the revision of the newest change, and how often the definition was changed.
func (g *changing) newest() api.DefinitionChange {
	g.t.Helper()
	all, err := g.c.Changes(g.t.Context(), api.ChangeQuery{Limit: 1})
	if err != nil || len(all.Changes) != 1 {
		g.t.Fatal(all, err)
	}
	return all.Changes[0]
}

// newestRollout is the id of the rollout that began last; "" for none.
func (g *changing) newestRollout() string {
	list, err := g.c.Rollouts(g.t.Context())
	if err != nil || len(list) == 0 {
		return ""
	}
	return list[0].ID
}

// all waits until all hosts have that VLAN.
func (g *changing) all(vlan int) {
	g.t.Helper()
	g.c.Await(fmt.Sprintf("all hosts have VLAN %d", vlan), func() bool {
		// Guests that were just plugged in fall silent, which is a finding.
		if r := listed(g.c, g.newestRollout()); r.State == api.RolloutHalted {
			g.t.Logf("it halts: %v", r.Found)
			g.types("heddle rollout resume --all")
		}
		return len(g.withVLAN(fmt.Sprintf("access %d", vlan))) == 3
	})
}

// begun waits until a rollout's first stage has the change, and no other host.
func (g *changing) begun(vlan int) {
	g.t.Helper()
	g.c.Await("the first stage has begun", func() bool {
		return len(g.withVLAN(fmt.Sprintf("access %d", vlan))) == 1
	})
}

// followedAndLeft follows a rollout until somebody types Ctrl-C: it goes on, and the command says so.
func (g *changing) followedAndLeft() {
	g.t.Helper()
	cmd := g.c.Command("rollout", "show", "--follow")
	out := &said{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	g.c.Await("it is followed", func() bool { return strings.Contains(out.String(), "is running: stage 1 of 2") })
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		g.t.Error(err)
	}
	err := cmd.Wait()
	if text := out.String(); err == nil || !strings.Contains(text, "goes on without this command") ||
		!strings.Contains(text, "--follow") {
		g.t.Errorf("it ended with %v, and said %q", err, text)
	}
	if r := rolloutOf(g.c, ""); r.State != api.RolloutRunning {
		g.t.Errorf("the rollout is %s", r.State)
	}
}

// said is what a command that runs has said so far.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// What was rolled back is rolled back again, at once and in stages; in the middle of that a person aborts it, or
// replaces it by another change. Each is a revision of its own, and hosts have what it says.
func TestS102_ARollbackOfARollback(t *testing.T) {
	testkit.Long(t, "goes through many stages; TestS102_ABadChangeStopsAtTheFirstHost has stages")
	t.Parallel()
	f, all := newStagedFleet(t, func(f *fleet) []*realhost.Controller {
		f.controller.Start()
		return []*realhost.Controller{f.controller}
	})
	g := &changing{f, all[0], t.TempDir()}
	// The second stage is so far that each row ends the rollout before, however busy the machine is.
	const inStages = "heddle definition rollback %d --stages 1,100%% --watch 2s --wait 10m"
	first := g.newest().Revision
	g.c.Define(dbVLAN(30))
	second := g.newest().Revision
	row := func(name string, do func(g *changing)) {
		t.Run(name, func(t *testing.T) {
			here := *f
			here.t = t
			do(&changing{&here, g.c, g.dir})
		})
	}
	row("in stages", func(g *changing) {
		out, err := typed(g.c, g.dir, fmt.Sprintf("heddle definition rollback %d --stages 1,100%% --wait 3s --follow",
			first))
		if err != nil && !strings.Contains(out, "has halted") {
			g.t.Fatal(err, out)
		}
		g.all(20)
		if last := g.newest(); last.Restores != first || !strings.Contains(last.How, "in stages") {
			g.t.Errorf("the history says %+v", last)
		}
	})
	row("and back again, aborted in the middle", func(g *changing) {
		g.types(fmt.Sprintf(inStages, second))
		rolled := g.newest().Revision
		g.begun(30)
		g.followedAndLeft()
		g.types("heddle rollout abort")
		g.all(20)
		if last := g.newest(); last.Base != rolled || !strings.Contains(last.How, "back") {
			g.t.Errorf("the history says %+v", last)
		}
	})
	row("the abort is rolled back", func(g *changing) {
		aborted := g.newest()
		g.types(fmt.Sprintf("heddle definition rollback %d", aborted.Base))
		g.all(30)
		g.types(fmt.Sprintf("heddle definition rollback %d", aborted.Revision))
		g.all(20)
	})
	row("superseded by a change at once", func(g *changing) {
		g.types(fmt.Sprintf(inStages, second))
		g.begun(30)
		if out, err := typed(g.c, g.dir, fmt.Sprintf("heddle definition rollback %d", first)); err == nil ||
			!strings.Contains(out, "--supersede") {
			g.t.Errorf("another change meanwhile: %v: %s", err, out)
		}
		g.types(fmt.Sprintf("heddle definition rollback %d --supersede", first))
		g.all(20)
		if r := rolloutOf(g.c, ""); r.State != api.RolloutSuperseded {
			g.t.Errorf("the rollout is %s", r.State)
		}
	})
	row("superseded by another in stages", func(g *changing) {
		g.types(fmt.Sprintf(inStages, second))
		g.begun(30)
		_, err := g.c.Fleet.Define(g.t.Context(), api.Define{File: "fleet.yaml", Content: dbVLAN(31), Supersede: true,
			Stages: &api.InStages{Stages: "1,100%", Wait: 2 * time.Second}})
		if err != nil {
			g.t.Fatal(err)
		}
		g.c.Await("the same host comes first, and no host has what was superseded for long", func() bool {
			return len(g.withVLAN("access 31")) >= 1 && len(g.withVLAN("access 30")) == 0
		})
		g.all(31)
	})
	if hosts := g.withVLAN("access 31"); len(hosts) != 3 {
		t.Errorf("in the end %v have the last change", hosts)
	}
}
