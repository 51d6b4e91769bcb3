package controlplane_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/lab/bench/controlplane"
	"heddle/internal/lab/report"
	"heddle/internal/test/testkit"
)

// The run itself fails when a host lacks a change, does not come back after the controller was killed, or reports other
// ports than it has.
func TestRun_EveryHostHasEveryChange(t *testing.T) {
	testkit.Long(t, "simulates many hosts; TestRun_EveryMoveIsKnown has fewer")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Setenv(asController, "1")
	var said []string
	o := controlplane.Options{Controller: []string{self}, Hosts: []int{24}, Ports: 20, Rounds: 2, Now: time.Now,
		Idle: 100 * time.Millisecond, Connects: 100, Connecting: time.Second,
		Progress: func(done, total int, what string) {
			if done != len(said) || done >= total {
				t.Errorf("step %d of %d after %d", done, total, len(said))
			}
			said = append(said, what)
		}}
	rep, err := controlplane.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(said) != 10 || said[0] != "24 hosts: hosts join" || said[9] != "24 hosts: ephemeral ports connected" {
		t.Errorf("progress %q", said)
	}
	var works []string
	for _, row := range rep.Rows {
		hosts, work := row.Get("hosts").(int), row.Get("work").(string)
		works = append(works, work)
		if work == "idle, memory" {
			if row.Get("memory").(float64) < 10e6 || row.Get("most_memory").(float64) < row.Get("memory").(float64) {
				t.Errorf("memory of %d hosts: %+v", hosts, row)
			}
			continue
		}
		if ports, ok := row.Get("ports").(int); ok {
			if p50, p99 := row.Get("p50").(float64), row.Get("p99").(float64); ports != 100 || p50 <= 0 || p99 < p50 ||
				row.Get("cpu_controller_port").(float64) <= 0 {
				t.Errorf("%d hosts, %s: %+v", hosts, work, row)
			}
			if writes := row.Get("transactions").(float64) > 0; writes != strings.HasPrefix(work, "static") {
				t.Errorf("%s: transactions of etcd: %v", work, writes)
			}
			continue
		}
		all, cpu := row.Get("all").(report.Spread), row.Get("cpu_controller").(report.Spread)
		if all.Rounds == 0 || all.Min <= 0 || cpu.Rounds != all.Rounds || cpu.Min <= 0 {
			t.Errorf("%d hosts, %s: %+v", hosts, work, row)
		}
		if p50, has := row.Get("p50").(float64); has {
			if p99, most := row.Get("p99").(float64), row.Get("max").(float64); p50 <= 0 || p99 < p50 || most < p99 {
				t.Errorf("%d hosts, %s: p50 %v p99 %v max %v", hosts, work, p50, p99, most)
			}
		}
	}
	want := []string{"join", "start", "first connection", "VLAN of a port group", "uplink policy of the switch",
		"removed port group", "reconnecting", "static ports connected", "ephemeral ports connected", "idle, memory"}
	if !slices.Equal(works, want) {
		t.Errorf("rows %q", works)
	}
	if !strings.Contains(strings.Join(rep.Notes, " "), "no kernel and no disk") {
		t.Errorf("the report does not say what is simulated: %q", rep.Notes)
	}
	if left, err := filepath.Glob(filepath.Join(tmp, "hb-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// The run itself fails when the controller does not say where a VM is, or marks one that moves as a conflict.
func TestRun_EveryMoveIsKnown(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv(asController, "1")
	rep, err := controlplane.Run(t.Context(), controlplane.Options{Controller: []string{self}, Hosts: []int{6},
		Ports: 5, Rounds: 1, Now: time.Now, Migrate: true, Moves: 20, Moving: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Budgets) != 1 {
		t.Errorf("budgets %+v", rep.Budgets)
	}
	for _, row := range rep.Rows {
		if row.Get("work") != "VMs moved to other hosts" {
			continue
		}
		if p50, p99 := row.Get("p50").(float64), row.Get("p99").(float64); row.Get("moves").(int) != 20 || p50 <= 0 ||
			p99 < p50 || row.Get("cpu_controller_move").(float64) <= 0 {
			t.Errorf("%+v", row)
		}
		return
	}
	t.Errorf("no row of moves: %+v", rep.Rows)
}

// A database is measured while it grows: its size rises with the ports that are bound in it.
func TestRun_TheDatabaseIsMeasuredWhileItGrows(t *testing.T) {
	testkit.Weigh(t, 3)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv(asController, "1")
	rep, err := controlplane.Run(t.Context(), controlplane.Options{Controller: []string{self}, Hosts: []int{6},
		Ports: 5, Rounds: 1, Now: time.Now, Database: true, Connects: 50, Connecting: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	var sizes []report.Row
	for _, row := range rep.Rows {
		if row.Get("work") == "etcd's database" {
			sizes = append(sizes, row)
		}
	}
	if len(sizes) < 2 || len(rep.Budgets) != 1 {
		t.Fatalf("sizes %+v, budgets %+v", sizes, rep.Budgets)
	}
	first, last := sizes[0], sizes[len(sizes)-1]
	for _, name := range []string{"in_use", "after"} {
		if last.Get(name).(float64) <= first.Get(name).(float64) {
			t.Errorf("%s: first %+v, last %+v", name, first, last)
		}
	}
	for _, row := range sizes {
		if file, used := row.Get("file").(float64), row.Get("in_use").(float64); used <= 0 || file < used ||
			row.Get("of_quota").(float64) <= 0 {
			t.Errorf("%+v", row)
		}
	}
}

func TestRun_SaysThatTheControllerDoesNotStart(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	_, err := controlplane.Run(t.Context(), controlplane.Options{Controller: []string{"/bin/sh", "-c",
		"echo the disk is full; exit 1"}, Hosts: []int{1}, Rounds: 1, Now: time.Now})
	if err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("error %v", err)
	}
}

func TestOptions_Check(t *testing.T) {
	var o controlplane.Options
	o.Default()
	if err := o.Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*controlplane.Options){
		"no hosts":       func(o *controlplane.Options) { o.Hosts = nil },
		"no host":        func(o *controlplane.Options) { o.Hosts = []int{100, 0} },
		"too many hosts": func(o *controlplane.Options) { o.Hosts = []int{20_000} },
		"too many ports": func(o *controlplane.Options) { o.Connects = 10_000 * 60 },
		"no moves":       func(o *controlplane.Options) { o.Migrate, o.Moves = true, 0 },
		"one host":       func(o *controlplane.Options) { o.Migrate, o.Hosts = true, []int{1} },
		"no connects":    func(o *controlplane.Options) { o.Database, o.Connects = true, 0 },
		"no rounds":      func(o *controlplane.Options) { o.Rounds = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			bad := o
			change(&bad)
			if bad.Check() == nil {
				t.Error("no error")
			}
		})
	}
}

// benchOf measures with this program as controller.
func benchOf(t *testing.T, o controlplane.Options) *report.Report {
	t.Helper()
	testkit.Weigh(t, 3)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv(asController, "1")
	o.Controller, o.Now = []string{self}, time.Now
	rep, err := controlplane.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// The run itself fails when a change is missing in the history. What is too much or too old goes.
func TestRun_AHistoryIsKeptAndLookedAt(t *testing.T) {
	testkit.Long(t, "writes a long history; TestRun_EveryMoveIsKnown has this bench's hosts")
	rep := benchOf(t, controlplane.Options{Hosts: []int{1}, Rounds: 1, History: 300})
	looks := 0
	for _, row := range rep.Rows {
		if all, ok := row.Get("all").(report.Spread); ok && row.Get("hosts").(int) == 1 && row.Get("work") != "join" {
			if looks++; all.Rounds != 100 || all.Min <= 0 {
				t.Errorf("%+v", row)
			}
		}
		if row.Get("work") == "history" {
			if kept, aged := row.Get("kept").(int), row.Get("aged").(int); kept < 300 || kept > 556 || aged > 256 {
				t.Errorf("%d changes are kept, %d by age", kept, aged)
			}
		}
	}
	if looks != 6 || len(rep.Budgets) != 9 {
		t.Errorf("%d looks, budgets %+v", looks, rep.Budgets)
	}
}
