package rpc

import (
	"slices"
	"testing"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/state"
	"heddle/internal/controller/together"
)

// A host changed at the instant, and its agent is started anew before anybody has asked: the new agent says what the
// one before knew, so that the host is not called late. Where that one ended before it had noted when the host changed,
// it is not known; and a host that had not the change then is late.
func TestS175_AHostWhoseAgentIsStartedAnewIsNotCalledLate(t *testing.T) {
	p := newPair(t)
	out, err := p.together(another("37"), &controllerv1.ChangeTogether{})
	if err != nil {
		t.Fatal(err)
	}
	hosts := []string{"host-a", "host-b"}
	for name, row := range map[string]struct {
		made   *state.Made
		late   bool
		unsure bool
	}{
		"noted":        {p.b.given.Made, false, false},
		"not noted":    {&state.Made{ID: out.GetTogether().GetId()}, false, true},
		"another":      {&state.Made{ID: "before", Known: true}, true, false},
		"late, and on": {&state.Made{ID: out.GetTogether().GetId(), Off: 9e9, Known: true}, true, false},
		"never any":    {nil, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			p.b.stop()
			p.b.mu.Lock()
			given := *p.b.given
			given.Made = row.made
			p.b.given = &given
			p.b.mu.Unlock()
			p.b.start()
			p.other.await("it is back", func() bool {
				return p.other.state("host-b") == controllerv1.HostState_HOST_STATE_UP
			})
			p.one.await("it is judged so", func() bool {
				there := p.one.askHosts(t.Context(), &controllerv1.GetHostsHereRequest{Names: hosts})
				off, unsure := preparing{p.one.fleet}.toldOf(out.GetTogether().GetId(), hosts, there)
				late, _ := together.Outcome(hosts, nil, together.Told{Off: off, Unsure: unsure},
					5*time.Second) // a busy machine may make a change late
				is := slices.ContainsFunc(late, func(l together.Late) bool { return l.Host == "host-b" })
				return is == row.late && (unsure["host-b"] != "") == row.unsure
			})
		})
	}
}
