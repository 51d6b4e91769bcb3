package top

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/api"
)

// flowReading is n flows; flow i has i packets a second, and n−i kbit/s.
func flowReading(n int) api.FlowTop {
	t := api.FlowTop{Time: start, Metered: true, Matching: 2 * n, Active: n,
		Sum: api.FlowRates{Packets: 1234, Bits: 5e9}}
	for i := range n {
		t.Flows = append(t.Flows, api.FlowRate{Flow: api.Flow{Port: "vm" + string(rune('a'+i%26)), Protocol: "tcp"},
			Rates: api.FlowRates{Packets: float64(i), Bits: float64(1000 * (n - i))}})
	}
	return t
}

func flowCells(f api.Flow) FlowRow {
	return FlowRow{Port: f.Port, Direction: "out", VLAN: "ad:4094", Protocol: f.Protocol,
		Source: "[2001:db8:ffff:ffff:ffff:ffff:ffff:ffff]:65535", Destination: "192.0.2.1:443"}
}

func flowLines(m *FlowModel) (lines []string) {
	for _, l := range m.Screen() {
		lines = append(lines, strings.TrimRight(l.Text, " "))
	}
	return lines
}

func TestFlowsAreShownByRate(t *testing.T) {
	m := &FlowModel{FlowView: FlowView{Title: "default", Only: "port vm1", Interval: time.Second, Sort: "bits",
		Width: 100, Height: 7}}
	if lines := flowLines(m); lines[2] != "measuring" {
		t.Errorf("before the first answer: %q", lines)
	}
	m.Update(flowReading(26), flowCells)
	want := []string{
		"heddle flows top  default  03:04:05  every 1s  only port vm1",
		"52 flows, 26 active   1.2k pkt/s   5G bit/s   each packet counted once",
		"q quit  s sort  p pause  arrows scroll",
		"PORT          DIR VLAN    PROTO     SOURCE                  DESTINATION                PKT/s  BIT/s↓",
		"vma           out ad:4094 tcp       [2001:db8:ffff:ffff:fff 192.0.2.1:443                  0     26k",
		"vmb           out ad:4094 tcp       [2001:db8:ffff:ffff:fff 192.0.2.1:443                  1     25k",
		"vmc           out ad:4094 tcp       [2001:db8:ffff:ffff:fff 192.0.2.1:443                  2     24k",
	}
	if d := cmp.Diff(want, flowLines(m)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	for _, c := range []struct{ key, first string }{{"s", "vmz"}, {"down", "vmy"}, {"end", "vmc"}, {"page-up", "vme"},
		{"home", "vmz"}, {"left", "vma"}, {"up", "vma"}, {"page-down", "vmc"}} {
		t.Run(c.key, func(t *testing.T) {
			m.Key(c.key)
			if got := strings.Fields(flowLines(m)[above])[0]; got != c.first {
				t.Errorf("after %s the first is %s, want %s", c.key, got, c.first)
			}
		})
	}
	for key, want := range map[string]Action{"q": Quit, "\x03": Quit, "\x1a": Suspend, "\x0c": Redraw, "p": Nothing,
		"x": Nothing} {
		t.Run(key, func(t *testing.T) {
			if got := m.Key(key); got != want {
				t.Errorf("%q: %v, want %v", key, got, want)
			}
		})
	}
	if !m.Paused || flowLines(m)[2] != "paused (p)" {
		t.Error("p does not pause")
	}
	for width := range 140 {
		m.Width, m.Height = width, 1+width%9
		for _, l := range flowLines(m) {
			if n := utf8.RuneCountInString(l); n > width {
				t.Fatalf("%d characters on a terminal of %d", n, width)
			}
		}
	}
}

func TestFlowsAsLinesAndJSON(t *testing.T) {
	m := &FlowModel{FlowView: FlowView{Title: "default", Interval: time.Second, Sort: "packets"}}
	m.Update(flowReading(3), flowCells)
	var text, doc strings.Builder
	if err := errors.Join(m.Batch(&text), m.JSON(&doc)); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), "\n"); n != 6 || strings.Contains(text.String(), "q quit") ||
		strings.Index(text.String(), "vmc") > strings.Index(text.String(), "vma") {
		t.Errorf("%s", text.String())
	}
	var back api.FlowTop
	if err := json.Unmarshal([]byte(doc.String()), &back); err != nil ||
		!reflect.DeepEqual(back.Flows, flowReading(3).Flows) {
		t.Errorf("%v %s", err, doc.String())
	}
	m.Update(api.FlowTop{Time: start, Note: api.FlowNote{Code: api.NothingMetered,
		Text: "nothing is metered: do this"}}, flowCells)
	if lines := flowLines(m); !strings.HasPrefix(lines[2], "nothing is metered") {
		t.Errorf("%q", lines)
	}
}

// An agent that disappears may come back; its last answer stays on the screen.
func TestAViewOfFlowsOutlivesItsAgent(t *testing.T) {
	away := errors.New("no agent")
	var answer api.FlowTop
	var fails error
	m := &FlowModel{FlowView: FlowView{Interval: time.Second, Sort: "bits", Width: 100, Height: 9}}
	v := RunFlows(m, func(_ context.Context, sort string) (api.FlowTop, error) {
		if sort != "bits" {
			t.Errorf("sorted by %s", sort)
		}
		return answer, fails
	}, func(t api.FlowTop) { m.Update(t, flowCells) })
	read := func() error { return v.Read()(t.Context())() }
	fails = away
	if err := read(); !errors.Is(err, away) {
		t.Errorf("an agent that never answered: %v", err)
	}
	answer, fails = flowReading(2), nil
	if err := read(); err != nil || len(v.Draw(100, 9)) != above+2 {
		t.Errorf("%v, %d lines", err, len(v.Draw(100, 9)))
	}
	fails = away
	if err := read(); err != nil || len(v.Draw(100, 9)) != above+2 || flowLines(m)[2] != "no answer: no agent" {
		t.Errorf("%v, %q", err, flowLines(m))
	}
}
