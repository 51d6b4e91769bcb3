package tree

import (
	"fmt"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/plan"
)

func TestPortsThatStayAsCommandsSetThem(t *testing.T) {
	moved := api.Override{Field: "portGroup", Value: plan.FieldValueOf("other"), File: plan.FieldValueOf("web")}
	s := furnished()
	s.applied = api.Applied{DryRun: true, Changes: []api.Change{}, Kept: []api.KeptPort{
		{Port: api.ObjectRef{Kind: api.PortObject, Switch: "lab", Name: "vm1/eth0"}, Overrides: []api.Override{moved,
			{Field: "blocked", Value: plan.FieldValueOf(true)}}}}}
	c := newConsole(t, s)
	c.stdin = "switches: [{name: lab}]\n"
	const where = "port vm1/eth0 is in port group other by command, the file says web: apply leaves it there " +
		`(heddle port move vm1/eth0 --port-group web takes it back)` + "\n"
	const what = `port vm1/eth0 is blocked by command: apply leaves it so (heddle port unblock vm1/eth0 lifts it)` +
		"\n"
	if out, errs, status := c.run("apply", "-f", "-", "--dry-run"); status != 0 ||
		out != "nothing changes\n"+where+what {
		t.Errorf("%d %q %s", status, out, errs)
	}
	many := s.applied.Kept[0]
	for i := range cli.MostKept + 2 {
		many.Port.Name = fmt.Sprint("p", i)
		s.applied.Kept = append(s.applied.Kept, many)
	}
	if out := c.must("apply", "-f", "-", "--dry-run"); !strings.HasSuffix(out,
		"and 3 more ports stay as commands have set them (see \"heddle port list\")\n") ||
		strings.Contains(out, "p9 ") {
		t.Errorf("%q", out)
	}

	s.state.Ports[0].Origin, s.state.Ports[0].Overrides = api.FromFile, []api.Override{moved}
	p := s.state.Ports[0]
	gone := "port " + p.Switch + "/" + p.Name + ": a command moved it to port group other, which is gone; it is " +
		"in web, as the file says\n"
	if out := c.must("port", "list"); !strings.Contains(out, gone) {
		t.Errorf("want %q in\n%s", gone, out)
	}
	s.state.Ports[0].PortGroup = "other"
	want := "port " + p.Switch + "/" + p.Name + ": the file says port group web; apply leaves it in other\n"
	if out := c.must("port", "list"); !strings.Contains(out, want) {
		t.Errorf("want %q in\n%s", want, out)
	}
	if out := c.must("port", "show", p.Name); !strings.Contains(out, "is in port group other by command") {
		t.Errorf("port show:\n%s", out)
	}
	s.state.Ports[0].Overrides = []api.Override{{Field: "portGroup", Value: plan.FieldValueOf("web"),
		File: plan.FieldValueOf("web")}}
	if out := c.must("port", "list"); strings.Contains(out, "the file says") {
		t.Errorf("nothing differs:\n%s", out)
	}
}
