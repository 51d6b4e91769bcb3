package tree

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/plan"
)

func TestMACFlush(t *testing.T) {
	vlan := func(n uint16) *uint16 { return &n }
	service := func() *standIn {
		return &standIn{
			state: api.State{Switches: []api.Switch{{Name: "lab"}}, Ports: []api.Port{{Switch: "lab", Name: "vm1"}}},
			macs: []api.MAC{
				{Switch: "lab", MAC: "02:00:00:00:01:01", Port: "vm1", Kind: "port"},
				{Switch: "lab", VLAN: plan.SegmentOf(10, false), MAC: "02:00:00:00:aa:01", Port: "vm1",
					Kind: "learned"},
			},
		}
	}
	for args, c := range map[string]struct {
		order  *api.ForgetMACs
		out    string
		errs   string
		status int
	}{
		"--port vm1":   {&api.ForgetMACs{Port: "vm1"}, "forgot 1 learned address\n", "", cli.ExitOK},
		"--switch lab": {&api.ForgetMACs{Switch: "lab"}, "forgot 1 learned address\n", "", cli.ExitOK},
		"--all":        {&api.ForgetMACs{}, "forgot 1 learned address\n", "", cli.ExitOK},
		"02-00-00-00-AA-01 --vlan 0": {&api.ForgetMACs{MAC: "02:00:00:00:aa:01", VLAN: vlan(0)},
			"forgot 1 learned address\n", "", cli.ExitOK},
		"--vlan 10 --dry-run": {&api.ForgetMACs{VLAN: vlan(10), DryRun: true}, "SWITCH  VLAN  MAC                PORT" +
			"  KIND     IDLE\nlab     10    02:00:00:00:aa:01  vm1   learned    0s\n" +
			"1 learned address would be forgotten (dry run)\n", "", cli.ExitOK},
		"":                  {nil, "", "say which addresses", cli.ExitUsage},
		"--all --port vm1":  {nil, "", "--all is every learned address", cli.ExitUsage},
		"--vlan 4095":       {nil, "", "--vlan 4095: it is 1–4094", cli.ExitUsage},
		"02:00:00":          {nil, "", "02:00:00", cli.ExitUsage},
		"--port vm2":        {nil, "", "vm1", cli.ExitFailure},
		"--port vm1 -o xml": {nil, "", "xml", cli.ExitUsage},
	} {
		t.Run(args, func(t *testing.T) {
			s := service()
			out, errs, status := newConsole(t, s).run(append([]string{"mac", "flush"}, strings.Fields(args)...)...)
			if out != c.out || status != c.status || !strings.Contains(errs, c.errs) {
				t.Errorf("status %d, want %d; stderr %q\n%s", status, c.status, errs, cmp.Diff(c.out, out))
			}
			var want []api.ForgetMACs
			if c.order != nil {
				want = append(want, *c.order)
			}
			if d := cmp.Diff(want, s.forgotten); d != "" {
				t.Errorf("orders (-want +got): %s", d)
			}
		})
	}
}
