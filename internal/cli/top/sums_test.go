package top

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
)

// A view of sums scrolls, is paused, requests another order, and outlives the agent.
func TestSumsAreShownLive(t *testing.T) {
	sums := api.FlowSums{Time: time.Now(), By: api.ByProtocol, Rest: api.FlowSum{Groups: 4, Flows: 9}}
	for _, name := range []string{"tcp", "udp", "icmp\x1b[2J", "arp"} {
		sums.Rows = append(sums.Rows, api.FlowSum{Name: name, Share: 0.25, Rates: api.FlowRates{Bits: 1000}})
	}
	var asked []string
	var fails error
	m := NewSums(SumModel{FlowView: FlowView{Title: "host", Interval: time.Second, Sort: "bits"},
		Heads: []string{"PROTOCOL"}}, func(r *api.FlowSum) []string { return []string{r.Name} })
	v := RunSums(m, func(_ context.Context, sort string) (api.FlowSums, error) {
		asked = append(asked, sort)
		return sums, fails
	}, m.Update)
	read := func() error { return v.Read()(t.Context())() }
	fails = errors.New("no agent")
	if err := read(); err == nil {
		t.Error("who never answered is no error")
	}
	fails = nil
	if err := read(); err != nil {
		t.Fatal(err)
	}
	lines := func() []string {
		var all []string
		for _, l := range v.Draw(80, above+3) {
			all = append(all, strings.TrimRight(l.Text, " "))
		}
		return all
	}
	if got := lines(); len(got) != above+3 || !strings.HasPrefix(got[above], "tcp") ||
		!strings.Contains(got[above-1], "BIT/s↓") || strings.Contains(got[above+2], "\x1b") {
		t.Errorf("%q", got)
	}
	for range 9 {
		v.Key("down")
	}
	if got := lines(); !strings.HasPrefix(got[above+2], "4 others") {
		t.Errorf("%q", got)
	}
	v.Key("s")
	v.Key("p")
	fails = errors.New("no agent")
	if err := read(); err != nil || !v.Resting() || !strings.Contains(lines()[2], "no answer: no agent") ||
		asked[len(asked)-1] != "packets" || !strings.Contains(lines()[3], "PKT/s↓") {
		t.Errorf("%v %q, asked %v", err, lines(), asked)
	}
	if v.Key("q") != Quit || v.Key("\x1a") != Suspend || v.Key("\x0c") != Redraw {
		t.Error("keys")
	}
}
