package tree

import (
	"encoding/json"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/plan"
)

// moving returns an agent at which two ports move, and one is cut off, when uplink1 is drained.
func moving() *standIn {
	return &standIn{
		maintained: api.Maintained{Switch: "lab", Uplinks: []string{"uplink1"}, CutOff: []string{"vm3"},
			Moves: []api.UplinkMove{{Port: "vm1", From: []string{"uplink1"}, To: []string{"uplink2"}},
				{Port: "vmk0", Host: true, From: []string{"uplink1"}, To: []string{"uplink2"}}}},
		applied: api.Applied{Changes: []api.Change{{Kind: api.Changed, Object: api.ObjectRef{Kind: api.UplinkObject,
			Switch: "lab", Name: "uplink1"}, Field: "drained", Old: plan.FieldValueOf(false),
			New: plan.FieldValueOf(true)}}},
	}
}

func TestUplinkDrain_ListsWhatMovesAndAsks(t *testing.T) {
	t.Parallel() // it waits
	const list = "2 ports move from uplink1 to uplink2: vm1, vmk0 (the host's own)\n1 port loses its only uplink: vm3\n"
	for _, c := range []struct {
		what, args, answer string
		asking             bool
		status             int
		uses               string // the requests to the agent, in order
		out, errs          string
	}{
		{what: "a dry run", args: "drain uplink1 --dry-run", out: list + "nothing was changed (dry run)\n"},
		{what: "no terminal", args: "drain uplink1 --wait 0", uses: "drained", out: "2 ports moved from uplink1 to " +
			"uplink2: vm1, vmk0 (the host's own)\n1 port lost its uplink: vm3\nuplink uplink1 is drained\n" +
			"take it back with: heddle uplink restore uplink1\n"},
		{what: "yes", args: "drain uplink1 --wait 0", asking: true, answer: "y\n", uses: "drained",
			out: "uplink uplink1 is drained\n", errs: list + "Drain uplink uplink1? [y/N] "},
		{what: "no", args: "drain uplink1", asking: true, answer: "\n", status: cli.ExitFailure, errs: list +
			"Drain uplink uplink1? [y/N] heddle: nothing was changed\n"},
		{what: "--yes", args: "block uplink1 --wait 0 --yes", asking: true, uses: "blocked",
			out: "uplink uplink1 is blocked\n"},
		{what: "a block drains first", args: "block uplink1", uses: "drained blocked",
			out: "uplink uplink1 is blocked\n"},
		{what: "waits until nothing arrives", args: "drain uplink1", uses: "drained",
			out: "no unicast frame passes by it any more: its link may be taken down\n"},
		{what: "a restore does not ask", args: "restore uplink1", asking: true, uses: "in-use",
			out: "uplink uplink1 is back in use\n"},
		{what: "by the names of the opposites", args: "undrain uplink1", uses: "in-use"},
		{what: "no name", args: "drain", status: cli.ExitUsage, errs: "UPLINK"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			s := moving()
			con := newConsole(t, s)
			con.asking, con.stdin = c.asking, c.answer
			out, errs, status := con.run(append([]string{"uplink"}, strings.Fields(c.args)...)...)
			if status != c.status || !strings.Contains(out, c.out) ||
				!strings.Contains(errs, c.errs) {
				t.Errorf("status %d: %s%s", status, out, errs)
			}
			var uses []string
			for _, q := range s.asked {
				if q, ok := q.(api.Maintain); ok && !q.DryRun {
					uses = append(uses, string(q.Use))
				}
			}
			if got := strings.Join(uses, " "); got != c.uses {
				t.Errorf("the agent was asked for %q", got)
			}
		})
	}
}

// Frames that still arrive are counted without the unknown unicast that physical switches flood.
func TestUplinkDrain_SaysWhatStillArrives(t *testing.T) {
	t.Parallel() // it waits
	reading := func(in, unknown uint64) []api.Stats {
		return []api.Stats{{Switch: "lab", Name: "uplink1", Uplink: true,
			Counters: api.Counters{{Name: "packetsInUnicast", Value: in}},
			Drops:    api.ReasonCounts{{Reason: "unknown-unicast", Value: unknown}}}}
	}
	for _, c := range []struct {
		what  string
		step  uint64 // arriving frames that are unknown unicast
		quiet bool
	}{{"what somebody wants", 0, false}, {"unknown unicast alone", 7, true}} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			s := moving()
			for i := range uint64(200) {
				s.readings = append(s.readings, reading(7*i, c.step*i))
			}
			var got struct{ Quiet *bool }
			out := newConsole(t, s).must("uplink", "drain", "uplink1", "--wait", "2s", "-o", "json")
			if err := json.Unmarshal([]byte(out), &got); err != nil || got.Quiet == nil || *got.Quiet != c.quiet {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

func TestUplinkDrain_SaysThatItWasSoAlready(t *testing.T) {
	s := moving()
	s.applied.Changes = nil
	s.maintained.Uplinks = []string{"l1", "l2"}
	for args, want := range map[string]string{"drain lag1": "uplinks l1, l2 are drained already\n",
		"restore lag1": "uplinks l1, l2 are in use already\n"} {
		t.Run(args, func(t *testing.T) {
			if out := newConsole(t, s).must(append([]string{"uplink"}, strings.Fields(args)...)...); out != want {
				t.Errorf("%s", out)
			}
		})
	}
}
