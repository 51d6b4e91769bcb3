package agent

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/api"
	"heddle/internal/plan"
)

// Values that a command has set on a port of the file stay when the file is applied, and the answer says so, in a dry
// run too.
func TestS10_ApplySaysWhichPortsStayAsCommandsSetThem(t *testing.T) {
	r := newRig(t, base)
	if err := r.command(func(ctx context.Context) error {
		_, err := r.commands.Move(ctx, api.Move{Port: "a", PortGroup: "other"})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := r.block("b", true); err != nil {
		t.Fatal(err)
	}
	apply := func(file string, dry bool) *api.Applied {
		t.Helper()
		out, err := r.answer(func(ctx context.Context) (*api.Applied, error) {
			return r.files.Apply(ctx, api.Apply{File: "next.yaml", Content: file, DryRun: dry})
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	port := func(name string) api.ObjectRef {
		return api.ObjectRef{Kind: api.PortObject, Switch: "lab", Name: name}
	}
	moved := api.Override{Field: "portGroup", Value: plan.FieldValueOf("other"), File: plan.FieldValueOf("web")}
	blocked := api.Override{Field: "blocked", Value: plan.FieldValueOf(true)}
	want := []api.KeptPort{{Port: port("a"), Overrides: []api.Override{moved}},
		{Port: port("b"), Overrides: []api.Override{blocked}}}
	for _, dry := range []bool{true, false} {
		out := apply(base, dry)
		if d := cmp.Diff(want, out.Kept); d != "" || len(out.Changes)+len(out.Effects) != 0 {
			t.Errorf("dry run %v: %+v %s", dry, out, d)
		}
		now := r.Active().Plan
		if p := planned(now, "a"); p.PortGroup != "other" || !planned(now, "b").Policy.Blocked.V {
			t.Errorf("dry run %v: port a is in %s", dry, p.PortGroup)
		}
	}
	// If the file says what the command did, there is nothing to report.
	out := apply(strings.Replace(base, "name: a, switch: lab, portGroup: web", "name: a, switch: lab, portGroup: other",
		1),
		true)
	if d := cmp.Diff(want[1:], out.Kept); d != "" {
		t.Error(d)
	}
}
