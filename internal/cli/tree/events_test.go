package tree

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/observe/event"
)

func TestEvents_AreLinesForPeopleAndForPrograms(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 5e6, time.Local)
	s := furnished()
	s.events = []api.Events{{Started: at, Events: []event.Event{
		{Seq: 1, Time: at, Kind: event.Link, Switch: "lab", Uplink: "uplink1", From: "up", To: "down",
			Text: "uplink uplink1 is down"},
		{Seq: 2, Time: at, Kind: event.Failover, Switch: "lab", From: "uplink1", To: "uplink2", Ports: 3,
			Text: "3 ports use uplink2"},
	}}, {Started: at, Missed: 4,
		Events: []event.Event{{Seq: 7, Time: at, Kind: event.Applied, Text: "heddle.yaml applied: 1 change"}}}}
	c := newConsole(t, s)
	out, errs, status := c.run("events", "--no-follow", "--last", "-1")
	want := "2026-11-21 12:00:00.005  link           lab: uplink uplink1 is down\n" +
		"2026-11-21 12:00:00.005  failover       lab: 3 ports use uplink2\n" +
		"2026-11-21 12:00:00.005  applied        heddle.yaml applied: 1 change\n"
	if out != want || status != 0 || !strings.Contains(errs, "4 events") {
		t.Errorf("status %d, %q\n%s", status, errs, out)
	}
	if q := s.asked[0]; q != (api.Follow{Last: -1, NoFollow: true}) {
		t.Errorf("asked %+v", q)
	}
	lines := strings.Split(strings.TrimSpace(c.must("events", "--no-follow", "-o", "json", "--kind", "failover,link",
		"--port", "uplink1")), "\n")
	var e event.Event
	if err := json.Unmarshal([]byte(lines[1]), &e); len(lines) != 2 || err != nil || e.Kind != event.Failover ||
		e.Ports != 3 {
		t.Errorf("%v %v", lines, err)
	}
}

func TestEvents_WrongInputIsRefused(t *testing.T) {
	c := newConsole(t, furnished())
	for args, want := range map[string]string{
		"events --kind explosion": `there is no kind of event "explosion"`,
		"events -o xml":           `output format "xml"`,
		"events now":              "",
	} {
		t.Run(args, func(t *testing.T) {
			if _, errs, status := c.run(strings.Fields(args)...); status != cli.ExitUsage || !strings.Contains(errs,
				want) {
				t.Errorf("%s: status %d, %s", args, status, errs)
			}
		})
	}
	c.dir = t.TempDir()
	if _, errs, status := c.run("events"); status != cli.ExitFailure || !strings.Contains(errs, "no agent is running") {
		t.Errorf("without an agent: status %d, %s", status, errs)
	}
}
