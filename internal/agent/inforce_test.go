package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
)

func TestAFullDiskRefusesAChangeBeforeItIsInForce(t *testing.T) {
	r := newRig(t, base)
	plans, saved := len(r.kernel.applied), r.saved()
	inTheWay := filepath.Join(r.dir, "state.json.new")
	if err := os.Mkdir(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := r.apply(strings.ReplaceAll(base, "100", "300")); err == nil ||
		!strings.Contains(err.Error(), "write the agent's state") {
		t.Errorf("apply: %v", err)
	}
	if err := r.block("a", true); err == nil {
		t.Error("block succeeded")
	}
	if n := len(r.kernel.applied); n != plans {
		t.Errorf("%d plans were in force in between", n-plans)
	}
	if got := r.saved(); got.Config != saved.Config || len(got.Overrides) != 0 {
		t.Errorf("state %+v", got)
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	if err := r.apply(strings.ReplaceAll(base, "100", "300")); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// The kernel calls back when everything but the flip is done; the files on disk at that point, and right after the
// flip, are what a crash would leave.
func TestACrashAroundTheFlipLeavesTheOldOrTheNewStateWhole(t *testing.T) {
	r := newRig(t, base)
	next := strings.ReplaceAll(base, "100", "300")
	var before, after string
	r.kernel.staged = func() { before = r.saved().Config.Content }
	r.kernel.flipped = func() { after = r.saved().Config.Content }
	if err := r.apply(next); err != nil {
		t.Fatal(err)
	}
	if before != base || after != base {
		t.Errorf("before the command is over the file says %q, %q", before, after)
	}
	if got := r.saved().Config.Content; got != next {
		t.Errorf("afterwards %q", got)
	}
	left, err := filepath.Glob(filepath.Join(r.dir, "*.new"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

func TestApplyingTheSameFileTwiceChangesNothing(t *testing.T) {
	r := newRig(t, base)
	r.dev.veth("pa", "02:00:00:00:00:0a")
	r.settler.settle()
	file := strings.ReplaceAll(base, "100", "300")
	var out *api.Applied
	apply := func() {
		err := r.command(func(ctx context.Context) (err error) {
			out, err = r.files.Apply(ctx, api.Apply{File: "next.yaml", Content: file})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	apply()
	if out.ActiveAt == nil || len(out.Changes) != 1 {
		t.Errorf("the first time: %+v", out)
	}
	plans, changes, flip := len(r.kernel.applied), slices.Clone(r.dev.changes), r.Active().Flip
	stamp, err := os.Stat(filepath.Join(r.dir, "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	apply()
	if len(out.Changes) != 0 || len(out.Effects) != 0 || out.ActiveAt != nil {
		t.Errorf("the second time: %+v", out)
	}
	again, err := os.Stat(filepath.Join(r.dir, "state.json"))
	if err != nil || !os.SameFile(stamp, again) {
		t.Errorf("the state was written again (%v)", err)
	}
	if len(r.kernel.applied) != plans || r.Active().Flip != flip || !slices.Equal(r.dev.changes, changes) {
		t.Errorf("%d plans, devices %v", len(r.kernel.applied)-plans, r.dev.changes[len(changes):])
	}
}

func TestInForceIsCountedFromTheInput(t *testing.T) {
	r := newRig(t, base)
	read, err := dataplane.Monotonic()
	if err != nil {
		t.Fatal(err)
	}
	r.kernel.at = dataplane.Instant{Before: read + 2_000_000, After: read + 2_500_000}
	for now := read; now <= r.kernel.at.After; time.Sleep(100 * time.Microsecond) { // the flip is not in the future
		if now, err = dataplane.Monotonic(); err != nil {
			t.Fatal(err)
		}
	}
	var out *api.Applied
	err = r.command(func(ctx context.Context) (err error) {
		out, err = r.commands.Move(ctx, api.Move{Port: "a", PortGroup: "other", ReadAt: read})
		return err
	})
	if err != nil || out.ActiveAfterSeconds != 2.5e-3 ||
		*out.ActiveAt != (api.Instant{Before: read + 2_000_000, After: read + 2_500_000}) {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestEffectsAreSaidInTheUsersWords(t *testing.T) {
	r := newRig(t, base)
	dry := func(file string) []string {
		var out *api.Applied
		err := r.command(func(ctx context.Context) (err error) {
			out, err = r.files.Apply(ctx, api.Apply{File: "next.yaml", Content: file, DryRun: true})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, e := range out.Effects {
			texts = append(texts, e.Text)
		}
		return texts
	}
	plans := len(r.kernel.applied)
	for _, c := range []struct {
		what, file string
		want       []string
	}{
		{"the same", base, nil},
		{"VLAN", strings.ReplaceAll(base, "access: 100", "access: 300"),
			[]string{"2 ports of port group lab/web change vlan access 100 → access 300"}},
		{"a port moves", strings.Replace(base, "name: a, switch: lab, portGroup: web", "name: a, switch: lab, "+
			"portGroup: other", 1),
			[]string{"port a of port group lab/other moves from port group web", "port a of port group lab/other " +
				"changes vlan access 100 → access 200"}},
		{"a port goes", strings.Join(strings.Split(base, "\n")[:len(strings.Split(base, "\n"))-2], "\n"),
			[]string{"port b of port group lab/web is disconnected"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			if got := dry(c.file); !slices.Equal(got, c.want) {
				t.Errorf("%s:\n%s\nwant\n%s", c.what, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
	if len(r.kernel.applied) != plans {
		t.Error("a dry run put a plan into force")
	}
}

func TestCommandsAreAnsweredWhileDevicesAreAttached(t *testing.T) {
	r := newRig(t, base)
	r.kernel.left = 40
	applied := make(chan error, 1)
	go func() {
		_, err := r.files.Apply(context.Background(),
			api.Apply{File: "next.yaml", Content: strings.ReplaceAll(base, "100", "300")})
		applied <- err
	}()
	(<-r.Calls())()
	var p *api.Progress
	progress := func() {
		err := r.command(func(ctx context.Context) (err error) { p, err = r.commands.Progress(ctx); return err })
		if err != nil {
			t.Fatal(err)
		}
	}
	progress()
	if p.Attaching != 40 || p.Of != 40 {
		t.Errorf("progress %+v", p)
	}
	select {
	case err := <-applied:
		t.Fatalf("the command returned (%v) while devices wait", err)
	case <-r.attaching.moreToAttach():
	}
	r.kernel.left = 10
	r.attaching.attach(nextTurn)
	progress()
	if p.Attaching != 10 || p.Of != 40 {
		t.Errorf("progress %+v", p)
	}
	r.kernel.left = 0
	r.attaching.attach(nextTurn)
	if err := <-applied; err != nil || r.attaching.moreToAttach() != nil {
		t.Errorf("at the end: %v", err)
	}
}

// A full disk refuses commands and nothing else: uplinks appear and disappear, and devices that cannot be recorded
// wait.
func TestAFullDiskDoesNotKeepLinksFromBeingFollowed(t *testing.T) {
	r := newRig(t, base)
	r.dev.veth("pa", "02:00:00:00:00:0a")
	nic := r.dev.nic("eno1", 1500)
	r.settler.settle()
	inTheWay := filepath.Join(r.dir, "state.json.new")
	if err := os.Mkdir(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	uplink, port, other := plan.PortID{Switch: "lab", Name: "u1"}, plan.PortID{Switch: "lab", Name: "a"}, plan.PortID{
		Switch: "lab", Name: "b"}
	for _, up := range []bool{false, true, false, true} {
		nic.Carrier = up
		r.settler.settle()
		if got := r.kernel.last().Facts[uplink].Up; got != up {
			t.Fatalf("the uplink is up: %v, in force: %v", up, got)
		}
	}
	r.dev.veth("pb", "02:00:00:00:00:0b")
	before := r.events.Last()
	nic.Carrier = false
	r.settler.settle()
	r.settler.settle()
	facts := r.kernel.last().Facts
	if _, there := facts[other]; there || facts[uplink].Up || !facts[port].Up {
		t.Errorf("with a device that cannot be written down: %+v", facts)
	}
	if why := r.Active().Problems[other]; !strings.Contains(why.Text(), "pb cannot be taken") {
		t.Errorf("b: %q", why)
	}
	delete(r.dev.byName, "pa")
	r.settler.settle()
	r.settler.settle()
	if _, there := r.kernel.last().Facts[port]; there {
		t.Error("a device that is gone is still in force")
	}
	if got := r.told(event.Disconnected); len(got) != 0 {
		t.Errorf("told over and over, and not written down: %+v (of %d)", got, r.events.Last()-before)
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	r.tick()
	if _, there := r.kernel.last().Facts[other]; !there || r.settler.retry || len(r.told(event.Disconnected)) != 1 {
		t.Errorf("with room again: b in force %v, retry %v", there, r.settler.retry)
	}
}

func TestAPipeAsConfigurationDoesNotHoldUpTheAgent(t *testing.T) {
	r := newRig(t, base)
	r.ports.configFile = filepath.Join(t.TempDir(), "heddle.yaml")
	if err := syscall.Mkfifo(r.ports.configFile, 0o600); err != nil {
		t.Fatal(err)
	}
	plans := len(r.kernel.applied)
	r.changer.reload()
	if len(r.kernel.applied) != plans {
		t.Error("something was put into force")
	}
	if err := r.apply(strings.ReplaceAll(base, "100", "300")); err != nil {
		t.Errorf("apply: %v", err)
	}
}

func TestADryRunNotesPoliciesThatAreSeldomMeant(t *testing.T) {
	r := newRig(t, base)
	for _, c := range []struct {
		policy string
		want   int
	}{{"", 0}, {", security: {macLearning: {enabled: true}}", 1}} {
		file := strings.Replace(base, "- name: lab\n", "- name: lab\n    kind: distributed\n", 1)
		file = strings.Replace(file, "vlan: {access: 100}", "vlan: {access: 100}"+c.policy, 1)
		for _, dry := range []bool{true, false} {
			t.Run(fmt.Sprint(c.policy, dry), func(t *testing.T) {
				var out *api.Applied
				err := r.command(func(ctx context.Context) (err error) {
					out, err = r.files.Apply(ctx, api.Apply{File: "next.yaml", Content: file, DryRun: dry})
					return err
				})
				if want := c.want; err != nil || dry && len(out.Notes) != want || !dry && len(out.Notes) != 0 {
					t.Errorf("%v: %+v", err, out)
				}
			})
		}
	}
}
