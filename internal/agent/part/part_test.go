package part

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"heddle/internal/agent/active"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/uplinks"
)

// kept writes down which of its hooks are called.
type kept struct {
	name string
	log  *[]string
}

func (k kept) say(what string) { *k.log = append(*k.log, k.name+" "+what) }
func (k kept) Close() error    { k.say("close"); return nil }

type whole struct{ kept }

func (w whole) Prepare(*active.Draft) { w.say("prepare") }
func (w whole) Settled(*active.Value) { w.say("settled") }
func (w whole) Tick()                 { w.say("tick") }
func (w whole) Activated(done bool)   { w.say(fmt.Sprintf("activated %v", done)) }
func (w whole) Activating(*plan.Plan) error {
	w.say("activating")
	return errors.New(w.name)
}
func (w whole) Want(*active.Value) active.Want {
	return active.Want{Blocked: map[plan.PortID]problem.Problem{{Name: w.name}: problem.Of(problem.NoDevice)}}
}

type follower struct{ kept }

func (f follower) Settled(uplinks.InForce) { f.say("told") }

// Hooks are called in the order of the table, whatever the order of adding; a part has the hooks that it likes.
func TestHooksAreCalledInTheOrderOfTheTable(t *testing.T) {
	var log []string
	var table Table
	for name, p := range map[string]Part{"path-mtu": whole{kept{"path-mtu", &log}},
		"loop-search": whole{kept{"loop-search", &log}}, "lacp": follower{kept{"lacp", &log}},
		"migration": kept{"migration", &log}} {
		table.Add(name, p)
	}
	if got := strings.Join(table.Names(), " "); got != "lacp loop-search path-mtu migration" {
		t.Errorf("the order is %s", got)
	}
	table.Prepare(nil)
	if err := table.Activating(nil); err == nil || err.Error() != "loop-search\npath-mtu" {
		t.Errorf("what refuses the plan: %v", err)
	}
	table.Activated(false)
	table.Settled(&active.Value{}, uplinks.InForce{})
	table.Tick()
	if want := table.Want(&active.Value{}); len(want.Blocked) != 2 {
		t.Errorf("together they want %+v", want)
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	want := []string{"loop-search prepare", "path-mtu prepare", "loop-search activating",
		"path-mtu activating", "loop-search activated false", "path-mtu activated false", "lacp told",
		"loop-search settled", "path-mtu settled",
		"loop-search tick", "path-mtu tick", "migration close", "path-mtu close", "loop-search close", "lacp close"}
	if !slices.Equal(log, want) {
		t.Errorf("called: %q", log)
	}
}

// A part without a place in the order, or with another one's, is refused, and holds nothing open.
func TestEachPartHasItsOwnPlace(t *testing.T) {
	var log []string
	var table Table
	table.Add("lacp", kept{"lacp", &log})
	if err := table.Faults(); err != nil {
		t.Error(err)
	}
	table.Add("invented", kept{"invented", &log})
	table.Add("lacp", kept{"again", &log})
	if err := table.Faults(); err == nil || len(log) != 2 || len(table.Names()) != 1 {
		t.Errorf("%v, %q, %v", err, log, table.Names())
	}
}
