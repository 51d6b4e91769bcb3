package adopttest

import (
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
)

// useOf returns the state of an uplink.
func (e *estate) useOf(uplink string) api.PortState {
	e.T.Helper()
	s, err := e.State(e.T.Context())
	if err != nil {
		e.T.Fatal(err)
	}
	for _, u := range s.Uplinks {
		if u.Name == uplink {
			return u.State
		}
	}
	e.T.Fatalf("there is no uplink %s", uplink)
	return ""
}

// The uplink by which the host is reached is drained, and the other uplink of the team leads nowhere: the drain is
// undone.
func TestS81_ADrainThatCutsTheHostOffGoesBack(t *testing.T) {
	testkit.Long(t, "waits for trials; TestS81_AnApplyThatCutsTheHostOffGoesBack has one")
	t.Parallel()
	for _, c := range []struct{ what, team, command string }{
		{"the standby uplink leads nowhere", "active: [uplink1], standby: [uplink2]", "uplink drain uplink1"},
		{"it is the only one", "active: [uplink1]", "uplink drain uplink1 --force"},
		{"blocked at once", "active: [uplink1]", "uplink block uplink1 --force --wait 0"},
	} {
		t.Run(c.what, func(t *testing.T) {
			e := newManaged(t)
			e.Configure(strings.Replace(managed, "name: management, teaming: {active: [uplink1]}",
				"name: management, teaming: {"+c.team+"}", 1))
			e.reaches()
			before := e.settled()
			out, errs, status := e.answer(append(strings.Fields(c.command), "-o", "json",
				"--confirm-within=3s")...)
			e.back(before, out, errs, status)
			if s := e.useOf("uplink1"); s != api.Up {
				t.Errorf("the uplink is %s: %s", s, errs)
			}
		})
	}
}

// If the agent dies before it is known whether the host is still reached, the next agent undoes the drain.
func TestS81_TheNextAgentTakesADrainBack(t *testing.T) {
	testkit.Long(t, "waits for a trial that the next agent ends; TestS81_AReleaseIsWatchedByTheNextAgent has one")
	t.Parallel()
	e := newManaged(t)
	before := e.settled()
	cmd := e.Command("uplink", "drain", "uplink1", "--force", "--confirm-within", "5s")
	if err := e.Launch(cmd); err != nil {
		t.Fatal(err)
	}
	e.Await("the uplink is drained", func() bool { return e.useOf("uplink1") == api.Drained })
	e.End(syscall.SIGKILL)
	_ = cmd.Wait() // it lost the agent
	e.Start("")
	e.Await("it goes back", func() bool { return e.useOf("uplink1") == api.Up })
	e.reaches()
	e.restored(before, "after the agent was killed")
}
