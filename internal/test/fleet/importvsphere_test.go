package fleet

import (
	"strings"
	"testing"

	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/realhost"
)

// An import is applied to a real controller, which then has the switches of the dump. A second import changes nothing,
// and one that collides with a later change neither.
func TestImportVsphere_IntoAController(t *testing.T) {
	t.Parallel()
	c := realhost.NewController(t, testkit.NS(t, "network"), "127.0.0.1:7411")
	c.Start()
	const dump = "../../vsphere/testdata/lab.json"
	imports := func(flags ...string) (out, errs string, status int) {
		args := append([]string{"--controller", c.Socket(), "import", "vsphere", dump, "--apply"}, flags...)
		return c.Heddle(args...)
	}
	shown := func() string {
		out, errs, status := c.Heddle("--controller", c.Socket(), "definition", "show")
		if status != 0 {
			t.Fatalf("status %d: %s", status, errs)
		}
		return out
	}
	empty := shown()
	if out, errs, status := imports("--dry-run"); status != 0 || shown() != empty {
		t.Fatalf("a dry run: status %d: %s%s; it has %s", status, out, errs, shown())
	}
	if out, errs, status := imports("-m", "from vCenter"); status != 0 {
		t.Fatalf("status %d: %s%s", status, out, errs)
	}
	first := shown()
	for _, want := range []string{"- name: lab\n", "- name: lag1\n", "portGroups:", "templates:", "hosts:"} {
		if !strings.Contains(first, want) {
			t.Errorf("there is no %q in %s", want, first)
		}
	}
	before, err := c.Definition(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if out, errs, status := imports(); status != 0 {
		t.Errorf("a second import: status %d: %s%s", status, out, errs)
	}
	after, err := c.Definition(t.Context())
	if err != nil || after.Revision != before.Revision || after.Content != before.Content {
		t.Errorf("after a second import it is revision %d, was %d (%v)", after.Revision, before.Revision, err)
	}

	c.Define(strings.Replace(after.Content, "mtu: 9000", "mtu: 1500", 1))
	changed := shown()
	if out, errs, status := imports(); status == 0 || !strings.Contains(errs, "switch lab") || shown() != changed {
		t.Errorf("an import that collides: status %d: %s%s", status, out, errs)
	}
	if out, errs, status := imports("--replace"); status != 0 || shown() != first {
		t.Errorf("an import that replaces: status %d: %s%s", status, out, errs)
	}
}
