package tree

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/cli/config"
	"heddle/internal/plan"
)

func (s *standIn) Configs(context.Context) ([]api.AppliedConfig, error) {
	list := slices.Clone(s.configs)
	for i := range list {
		list[i].Content = ""
	}
	return list, s.err
}
func (s *standIn) Config(_ context.Context, q api.ConfigQuery) (*api.AppliedConfig, error) {
	if q.Running {
		return &api.AppliedConfig{Content: s.running}, s.err
	}
	for _, c := range s.configs {
		if c.Number == q.Number || q.Number == 0 && c.Applied {
			return &c, s.err
		}
	}
	return nil, api.NewError(api.NotFound, "there is no such version")
}

// withHistory returns an agent that applied one port group from file, then another VLAN for it.
func withHistory(file string) *standIn {
	v := func(n int, vlan string, applied bool) api.AppliedConfig {
		return api.AppliedConfig{Number: n, Applied: applied, At: time.Unix(1000, 0), By: "apply " + file, File: file,
			Size:    60,
			Content: "# by hand\nswitches: [{name: lab, portGroups: [{name: web, vlan: {access: " + vlan + "}}]}]\n"}
	}
	s := &standIn{configs: []api.AppliedConfig{v(3, "10", false), v(4, "20", true)}}
	s.running = s.configs[1].Content + "ports: [{name: vm1/eth0, switch: lab, portGroup: web, device: tap0}]\n"
	return s
}

func TestConfigShow(t *testing.T) {
	s := withHistory("/nowhere/heddle.yaml")
	c := newConsole(t, s)
	for _, args := range [][]string{{"config", "show"}, {"config", "show", "4"}} {
		if out, errs, status := c.run(args...); status != 0 || out != s.configs[1].Content {
			t.Errorf("%v: %d %s%s", args, status, out, errs)
		}
	}
	if out, _, status := c.run("config", "show", "3"); status != 0 || out != s.configs[0].Content {
		t.Errorf("version 3: %d %s", status, out)
	}
	if out, _, status := c.run("config", "show", "--running"); status != 0 || out != s.running {
		t.Errorf("running: %d %s", status, out)
	}
	out, _, _ := c.run("config", "show", "3", "-o", "json")
	var v api.AppliedConfig
	if err := json.Unmarshal([]byte(out), &v); err != nil || v.Number != 3 || v.Content != s.configs[0].Content {
		t.Errorf("JSON: %v %s", err, out)
	}
	for _, wrong := range [][]string{{"x"}, {"0"}, {"3", "--running"}, {"3", "4"}} {
		if _, errs, status := c.run(append([]string{"config", "show"}, wrong...)...); status != cli.ExitUsage ||
			errs == "" {
			t.Errorf("%v: status %d, %s", wrong, status, errs)
		}
	}
}

func TestConfigHistoryIsNewestFirst(t *testing.T) {
	out, _, status := newConsole(t, withHistory("h.yaml")).run("config", "history")
	lines := strings.Split(out, "\n")
	if status != 0 || len(lines) < 3 || !strings.Contains(lines[1], "apply h.yaml") ||
		!strings.HasSuffix(lines[1], "applied now") ||
		!strings.Contains(lines[2], " 3  ") {
		t.Errorf("%d %s", status, out)
	}
	if out, _, status := newConsole(t, &standIn{}).run("config", "history"); status != 0 ||
		out != "no configuration was applied yet\n" {
		t.Errorf("none: %d %s", status, out)
	}
}

// The agent could not add the last applied configuration to the history.
func TestConfigHistoryWithoutTheAppliedVersion(t *testing.T) {
	s := withHistory("h.yaml")
	s.configs[1].Applied = false
	c := newConsole(t, s)
	out, _, status := c.run("config", "history")
	if status != 0 || strings.Contains(out, "applied now") || !strings.Contains(out, "is none of these") {
		t.Errorf("%d %s", status, out)
	}
	if _, errs, status := c.run("config", "rollback"); status != 0 ||
		s.asked[len(s.asked)-1].(api.Apply).Rollback != 4 {
		t.Errorf("rollback takes the newest: %d %+v %s", status, s.asked, errs)
	}
	if out, _, status := c.run("status"); strings.Contains(out, "(version") {
		t.Errorf("status names a version: %d %s", status, out)
	}
}

func TestConfigDiff(t *testing.T) {
	file := filepath.Join(t.TempDir(), "heddle.yaml")
	s := withHistory(file)
	c := newConsole(t, s)
	if _, errs, status := c.run("config", "diff"); status != 1 || !strings.Contains(errs, "cannot be read again") {
		t.Errorf("the file is gone: %d %s", status, errs)
	}
	if err := os.WriteFile(file, []byte(s.configs[1].Content+"# more\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errs, status := c.run("config", "diff"); status != 0 || !strings.HasPrefix(out, "no difference between") {
		t.Errorf("only a comment: %d %s%s", status, out, errs)
	}
	const vlan = "~ port group lab/web\n  ~ vlan.access: 10 → 20\n"
	for _, args := range [][]string{{"3"}, {"3", "4"}} {
		if out, errs, status := c.run(append([]string{"config", "diff"}, args...)...); status != 1 ||
			!strings.HasSuffix(out, vlan) || errs != "" {
			t.Errorf("%v: %d %s%s", args, status, out, errs)
		}
	}
	if out, _, status := c.run("config", "diff", "--running"); status != 1 ||
		!strings.Contains(out, "+ port vm1/eth0\n") {
		t.Errorf("running: %d %s", status, out)
	}
	if err := os.WriteFile(file, []byte(s.configs[0].Content), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, status := c.run("config", "diff", file, "-o", "json")
	var got config.ConfigDiff
	want := []api.Change{{Kind: api.Changed, Object: api.ObjectRef{Kind: api.PortGroupObject, Switch: "lab",
		Name: "web"}, Field: "vlan.access", Old: plan.FieldValueOf(20), New: plan.FieldValueOf(10)}}
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != 1 || got.To != file ||
		!cmp.Equal(got.Changes, want) {
		t.Errorf("a file: %v %d %s", err, status, out)
	}
	for _, wrong := range [][]string{{"nope.yaml"}, {file, "3"}, {"3", "x"}, {"3", "--running"}} {
		if _, errs, status := c.run(append([]string{"config", "diff"}, wrong...)...); status != cli.ExitUsage ||
			errs == "" {
			t.Errorf("%v: status %d, %s", wrong, status, errs)
		}
	}
}

func TestConfigRollback(t *testing.T) {
	file := filepath.Join(t.TempDir(), "heddle.yaml")
	s := withHistory(file)
	c := newConsole(t, s)
	if err := os.WriteFile(file, []byte(s.configs[1].Content), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{}, {"3"}} {
		_, errs, status := c.run(append([]string{"config", "rollback"}, args...)...)
		want := api.Apply{File: file, Content: s.configs[0].Content, Rollback: 3}
		if status != 0 || s.asked[len(s.asked)-1] != any(want) || !strings.Contains(errs, "heddle config show > "+
			file) {
			t.Errorf("%v: %d %+v %s", args, status, s.asked, errs)
		}
	}
	s.asked = nil
	if _, errs, status := c.run("config", "rollback", "7"); status != 1 || s.asked != nil || errs == "" {
		t.Errorf("a version that is not there: %d %s", status, errs)
	}
	s.configs = s.configs[1:]
	if _, errs, status := c.run("config", "rollback"); status != 1 || !strings.Contains(errs, "no version before") {
		t.Errorf("no version before: %d %s", status, errs)
	}
}
