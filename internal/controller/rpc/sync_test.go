package rpc

import (
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/durationpb"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// synced is what SyncHosts says, a line for each host.
func (c *controller) synced(host string) string {
	c.t.Helper()
	out := must(people{c.Server}.SyncHosts(c.t.Context(), &controllerv1.SyncHostsRequest{Host: host,
		Wait: durationpb.New(patience)}))(c.t)
	var lines []string
	for _, h := range out.GetHosts() {
		lines = append(lines, fmt.Sprintf("%s %v %q %v %q", h.GetHost(), h.GetBefore(), h.GetDifferences(),
			h.GetState(), h.GetProblems()))
	}
	return strings.ReplaceAll(strings.Join(lines, "\n"), "HOST_STATE_", "")
}

// refuse has a machine activate nothing, with these reasons.
func (m *machine) refuse(why ...string) (taken int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refuses = why
	return m.taken
}

// Hosts are sent everything again, say what became of it, and what was different is named.
func TestSync(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	m := c.up("esx1")
	away := c.up("esx2")
	away.stop()
	c.await("it is away", func() bool { return c.state("esx2") == controllerv1.HostState_HOST_STATE_DISCONNECTED })
	taken := m.refuse()
	for _, row := range []struct{ name, refuse, text, host, want string }{
		{"it is up, and takes it again", "", clusterText, "",
			`esx1 UP [] UP []` + "\n" + `esx2 DISCONNECTED [] DISCONNECTED []`},
		{"it cannot, before and after", "no such device", strings.Replace(clusterText, "access: 10", "access: 30", 1),
			"esx1",
			`esx1 OUT_OF_SYNC ["portGroup dvs/web is older"] OUT_OF_SYNC ["no such device"]`},
		{"it can now", "", "", "esx1", `esx1 OUT_OF_SYNC ["portGroup dvs/web is older"] UP []`},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.refuse != "" {
				m.refuse(row.refuse)
				c.define(row.text)
				c.await("it has refused", func() bool {
					return c.state("esx1") == controllerv1.HostState_HOST_STATE_OUT_OF_SYNC
				})
			}
			if row.refuse == "" {
				m.refuse()
			}
			if got := c.synced(row.host); got != row.want {
				t.Errorf("%s\nwant\n%s", got, row.want)
			}
			was := taken
			if taken = m.refuse(m.refuses...); taken <= was {
				t.Error("nothing was sent to the host")
			}
		})
	}
	was := m.refuse()
	out := must(people{c.Server}.SyncHosts(t.Context(), &controllerv1.SyncHostsRequest{Look: true}))(t)
	if len(out.GetHosts()) != 2 || m.refuse() != was {
		t.Errorf("who only looks sends something, or is told of %v", out.GetHosts())
	}
	_, err := people{c.Server}.SyncHosts(t.Context(), &controllerv1.SyncHostsRequest{Host: "esx9"})
	if connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("a host that there is not: %v", err)
	}
	_, err = others{c.Server}.SyncHostsHere(t.Context(), nil)
	if connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("somebody who is no controller: %v", err)
	}
}
