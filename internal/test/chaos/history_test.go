package chaos

import (
	"strings"
	"testing"
	"time"
)

func change(begins, ends time.Duration, on, revision int64, text string, outcome Outcome) Call {
	return Call{Begins: begins, Ends: ends, Outcome: outcome,
		Definition: &DefinitionCall{Write: true, On: on, Revision: revision, Text: text}}
}

func read(begins, ends time.Duration, revision int64, text string) Call {
	return Call{Client: 1, Begins: begins, Ends: ends, Outcome: Done,
		Definition: &DefinitionCall{Revision: revision, Text: text}}
}

// What is wrong with a history is found, and what is not is taken, calls of unknown outcome among them.
func TestS83_AHistoryOfTheDefinitionIsChecked(t *testing.T) {
	for _, c := range []struct {
		name  string
		calls []Call
		wrong bool
	}{
		{"a change is read", []Call{change(0, 1, 1, 2, "b", Done), read(2, 3, 2, "b")}, false},
		{"a change is lost", []Call{change(0, 1, 1, 2, "b", Done), read(2, 3, 1, "a")}, true},
		{"an old state is read while it changes", []Call{change(0, 5, 1, 2, "b", Done), read(2, 3, 1, "a")}, false},
		{"a later read is older", []Call{change(0, 9, 1, 2, "b", Done), read(2, 3, 2, "b"), read(4, 5, 1, "a")}, true},
		{"two changes of one revision", []Call{change(0, 1, 1, 2, "b", Done), change(0, 1, 1, 3, "c", Done)}, true},
		{"the second one is refused", []Call{change(0, 1, 1, 2, "b", Done), change(0, 1, 1, 0, "c", Refused)}, false},
		{"refused for nothing", []Call{change(0, 1, 1, 0, "b", Refused), read(2, 3, 1, "a")}, true},
		{"a change was made that nobody answered", []Call{change(0, 1, 1, 0, "b", Unknown), read(2, 3, 1, "a"),
			read(4, 5, 2, "b")}, false},
		{"it was made and is gone", []Call{change(0, 1, 1, 0, "b", Unknown), read(2, 3, 2, "b"), read(4, 5, 1, "a")},
			true},
		{"it was not made", []Call{change(0, 1, 1, 0, "b", Unknown), read(2, 3, 1, "a")}, false},
		{"one text has two revisions", []Call{change(0, 1, 1, 2, "b", Done), read(2, 3, 3, "b")}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := CheckDefinition(c.calls, DefinitionCall{Revision: 1, Text: "a"}, time.Minute)
			if (err != nil) != c.wrong {
				t.Errorf("%v", err)
			}
		})
	}
}

func ports(begins, ends time.Duration, outcome Outcome, q PortsCall) Call {
	return Call{Begins: begins, Ends: ends, Outcome: outcome, Ports: &q}
}

func TestS77_AHistoryOfStaticPortsIsChecked(t *testing.T) {
	claim := func(begins, ends time.Duration, vm, port string, outcome Outcome) Call {
		return ports(begins, ends, outcome, PortsCall{Verb: Claim, VM: vm, Port: port})
	}
	full := func(begins, ends time.Duration, vm string) Call {
		return ports(begins, ends, Refused, PortsCall{Verb: Claim, VM: vm, Full: true})
	}
	release := func(begins, ends time.Duration, vm string, outcome Outcome) Call {
		return ports(begins, ends, outcome, PortsCall{Verb: Release, VM: vm})
	}
	list := func(begins, ends time.Duration, bound string) Call {
		return ports(begins, ends, Done, PortsCall{Verb: List, Bound: portsOf(bound)})
	}
	for _, c := range []struct {
		name  string
		calls []Call
		wrong bool
	}{
		{"a port is claimed and given up", []Call{claim(0, 1, "a", "1", Done), list(2, 3, "1=a"),
			release(4, 5, "a", Done), claim(6, 7, "b", "1", Done)}, false},
		{"two VMs have a port", []Call{claim(0, 1, "a", "1", Done), claim(0, 1, "b", "1", Done)}, true},
		{"a claim is lost", []Call{claim(0, 1, "a", "1", Done), list(2, 3, "")}, true},
		{"all are bound", []Call{claim(0, 1, "a", "1", Done), claim(0, 1, "b", "2", Done), full(2, 3, "c")}, false},
		{"refused while one is free", []Call{claim(0, 1, "a", "1", Done), full(2, 3, "c")}, true},
		{"a claim that nobody answered comes late", []Call{claim(0, 1, "a", "", Unknown), list(2, 3, ""),
			list(4, 5, "2=a")}, false},
		{"it comes, goes and comes", []Call{claim(0, 1, "a", "", Unknown), list(2, 3, "2=a"),
			release(4, 5, "a", Done), list(6, 7, "2=a")}, false},
		{"a port is given up that nobody gave up", []Call{claim(0, 1, "a", "1", Done), list(2, 3, "1=a"),
			list(4, 5, "")}, true},
		{"a release that nobody answered", []Call{claim(0, 1, "a", "1", Done), release(2, 3, "a", Unknown),
			list(4, 5, "1=a"), list(6, 7, "")}, false},
		{"a release of what is not bound", []Call{release(2, 3, "a", Done)}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := CheckPorts(c.calls, 2, time.Minute); (err != nil) != c.wrong {
				t.Errorf("%v", err)
			}
		})
	}
}

// What can't be put in order is named.
func TestAnErrorNamesTheCallsThatDoNotFit(t *testing.T) {
	err := CheckDefinition([]Call{change(0, 1, 1, 2, "b", Done), read(2, 3, 1, "a")},
		DefinitionCall{Revision: 1, Text: "a"}, time.Minute)
	if err == nil || !strings.Contains(err.Error(), "client 1, 0s to 0s: read 1") {
		t.Errorf("%v", err)
	}
}
