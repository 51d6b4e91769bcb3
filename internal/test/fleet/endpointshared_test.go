package fleet

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"heddle/internal/api"
)

// TestS177_TwoHostsWithOneEndpointAreNamed: in the list of hosts, in the controller's status, and by the advice on each
// of both hosts; a third host and its advice are not concerned. When one of them has another address, nobody is.
func TestS177_TwoHostsWithOneEndpointAreNamed(t *testing.T) {
	t.Parallel()
	f := newOverlayFleet(t, 3, segmentText)
	f.inState("esx1", api.HostUp)
	address := func(verb, address string) {
		t.Helper()
		if out, err := f.hosts[1].NS.Output("ip", "addr", verb, address, "dev", "u0"); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	problems := func(name string) string { return strings.Join(f.host(name).Problems, "\n") }
	address("add", "10.9.0.2/32")
	address("del", "10.9.1.2/24")
	f.controller.Await("both are shown with the other one's name", func() bool {
		return strings.Contains(problems("esx0"), "10.9.0.2 is host esx1's as well") &&
			strings.Contains(problems("esx1"), "10.9.0.2 is host esx0's as well")
	})
	if p := problems("esx2"); strings.Contains(p, "10.9.0.2") {
		t.Errorf("the third host is shown with %s", p)
	}
	for _, name := range []string{"esx0", "esx1"} {
		f.inState(name, api.HostWarning)
	}
	status, err := f.controller.Status(t.Context())
	if err != nil || status.Healthy || !slices.ContainsFunc(status.Findings, func(h api.HealthFinding) bool {
		return h.Level == api.HealthWrong && strings.Contains(h.Text, "hosts esx0 and esx1 have the same endpoint")
	}) {
		t.Errorf("the controller's status: %v, %+v", err, status)
	}
	advised := func(n int) bool {
		t.Helper()
		cmd, out := f.hosts[n].Command("advise", "-o", "json"), bytes.Buffer{}
		cmd.Stdout = &out
		if err := f.hosts[n].Launch(cmd); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // its status says that something is wrong
		return strings.Contains(out.String(), "tunnel-endpoint") && strings.Contains(out.String(), "10.9.0.2")
	}
	for n := range 2 {
		f.hosts[n].Await("the advice names it", func() bool { return advised(n) })
	}
	if advised(2) {
		t.Error("the third host is advised to change its endpoint")
	}
	address("add", "10.9.1.2/24")
	address("del", "10.9.0.2/32")
	f.controller.Await("nobody is shown with it any more", func() bool {
		return problems("esx0") == "" && problems("esx1") == ""
	})
	f.inState("esx1", api.HostUp)
}
