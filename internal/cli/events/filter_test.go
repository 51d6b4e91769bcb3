package events

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heddle/internal/cli"
	"heddle/internal/observe/event"
)

func TestEvents_Filters(t *testing.T) {
	now := time.Now()
	e := event.Event{Time: now, Kind: event.Link, Switch: "dvs", Port: "vm1/eth0", From: "up", To: "down"}
	up := e
	up.To = "up"
	groups := groupsOfPorts{at: map[string]map[string]string{"esx1": {"vm1/eth0": "web"}}}
	for name, c := range map[string]struct {
		f    *eventFilter
		e    event.Event
		host string
		want bool
	}{
		"no filter":               {&eventFilter{}, e, "esx1", true},
		"its kind":                {&eventFilter{kinds: []string{"loop", "link"}}, e, "esx1", true},
		"another kind":            {&eventFilter{kinds: []string{"loop"}}, e, "esx1", false},
		"its switch":              {&eventFilter{sw: "dvs"}, e, "esx1", true},
		"another switch":          {&eventFilter{sw: "dv"}, e, "esx1", false},
		"its port group":          {&eventFilter{portGroup: "web"}, e, "esx1", true},
		"another port group":      {&eventFilter{portGroup: "db"}, e, "esx1", false},
		"that port of another":    {&eventFilter{portGroup: "web"}, e, "esx2", false},
		"down is a warning":       {&eventFilter{severity: "warning"}, e, "esx1", true},
		"down is no error":        {&eventFilter{severity: "error"}, e, "esx1", false},
		"up is for information":   {&eventFilter{severity: "warning"}, up, "esx1", false},
		"from then on":            {&eventFilter{from: now}, e, "esx1", true},
		"later":                   {&eventFilter{from: now.Add(1)}, e, "esx1", false},
		"its port, all the same":  {&eventFilter{port: "vm1/eth0", severity: "info"}, e, "esx1", true},
		"another port, otherwise": {&eventFilter{port: "vm2/eth0", sw: "dvs"}, e, "esx1", false},
	} {
		t.Run(name, func(t *testing.T) {
			c.f.groups.at = groups.at
			if got := c.f.wanted(c.e, c.host); got != c.want {
				t.Errorf("wanted: %v", got)
			}
			if !c.want && !c.f.some() {
				t.Error("a filter that refuses something is none")
			}
		})
	}
	f := &eventFilter{hosts: []string{"esx1*", "db"}}
	for host, want := range map[string]bool{"esx1": true, "esx12": true, "db": true, "db1": false, "esx2": false} {
		if f.ofHost(host) != want {
			t.Errorf("events of %s: %v", host, !want)
		}
	}
}

// Every kind of event has a severity that the flag knows.
func TestEvents_EachHasASeverity(t *testing.T) {
	seen := map[event.Severity]bool{}
	for _, k := range event.Kinds() {
		s := (&event.Event{Kind: k}).Severity()
		if seen[s] = true; s != event.Info && s != event.Warning && s != event.Error {
			t.Errorf("%s is of severity %q", k, s)
		}
	}
	if len(seen) != len(event.Severities()) {
		t.Errorf("only %v are used", seen)
	}
}

func TestEvents_TheFileToResumeFrom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "at")
	c, err := readCursor(path)
	if err != nil || c.of("esx1").Seq != 0 {
		t.Fatal(c, err)
	}
	if err := c.save(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a file of nothing was written")
	}
	at := lastPrinted{time.Now().UTC(), 7}
	c.put("esx1", at)
	c.put("esx1", lastPrinted{at.Started, 5}) // an older one does not count
	if err := c.save(); err != nil {
		t.Fatal(err)
	}
	if c, err = readCursor(path); err != nil || !c.of("esx1").Started.Equal(at.Started) || c.of("esx1").Seq != 7 {
		t.Error(c, err)
	}
	c.put("esx1", lastPrinted{at.Started.Add(1), 1}) // of another agent
	if c.of("esx1").Seq != 1 {
		t.Error("what another agent counts is taken for older")
	}
	for name, text := range map[string]string{
		"nothing": "", "another file": "switches: []\n",
		"another version": `{"version":2,"hosts":{}}`, "half": `{"version":1,"ho`,
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var usage *cli.UsageError
			if _, err := readCursor(path); !errors.As(err, &usage) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v", err)
			}
		})
	}
}
