package agent

import (
	"fmt"
	"strings"
	"testing"
)

const fourLearners = `
host: {macTable: %d}
switches:
- name: lab
  portGroups:
  - {name: web, security: {macLearning: {enabled: true}}}
ports:
- {name: a, switch: lab, portGroup: web, device: pa}
- {name: b, switch: lab, portGroup: web, device: pb}
`

// A table that the kernel does not have yet is reported as such, and no smaller one is recommended. The copies of the
// plan that advise and trace use know the size.
func TestWarningsOfTheMACTable(t *testing.T) {
	r := newRig(t, fmt.Sprintf(fourLearners, 4096))
	for _, c := range []struct {
		inKernel, asked int
		want            []string
	}{
		{131072, 131072, nil},
		{131072, 262144, []string{"takes effect when the agent is restarted"}},
		{4096, 8192, []string{"takes effect when the agent is restarted"}},
		{4096, 4096, []string{"add up to 8192, and the host's table holds 4096: 2 ports get"}},
		{8192, 4096, []string{"takes effect when the agent is restarted"}},
	} {
		r.Active().Plan.SetMACTable(c.inKernel)
		r.kernel.macTable = c.inKernel
		cfg := *r.ports.file
		cfg.Host.MACTable = c.asked
		got := r.ports.macTableWarnings(&cfg, r.Active().Plan)
		if len(got) != len(c.want) || len(got) > 0 && !strings.Contains(got[0], c.want[0]) {
			t.Errorf("%d in the kernel, %d asked for: %q, want %q", c.inKernel, c.asked, got, c.want)
		}
		if n := copied(r.Active().Plan).MACTable; n != c.inKernel {
			t.Errorf("a copy of the plan says %d, want %d", n, c.inKernel)
		}
	}
}
