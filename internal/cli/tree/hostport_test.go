package tree

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/api"
	"heddle/internal/cli"
)

func TestS81_TheCommandWaitsForTheGatewayAndSaysHowToKeepTheMove(t *testing.T) {
	s := &standIn{adoption: api.Adoption{Name: "vmk0", Device: "eno1", State: api.AdoptionConfirm,
		Gateways: []string{"192.0.2.1"}, Deadline: soon(), Warnings: []string{"rules"}}}
	c := newConsole(t, s)
	out, errs, status := c.run("host-port", "adopt", "eno1", "--gateway", "192.0.2.1", "--confirm-within", "5m")
	if status != 0 || !strings.Contains(out, "confirm within 1m") ||
		!strings.Contains(out, "heddle host-port confirm vmk0") || !strings.Contains(errs, "rules") {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	want := api.Adopt{Device: "eno1", Gateways: []string{"192.0.2.1"}, GatewayWithin: 30 * time.Second,
		ConfirmWithin: 5 * time.Minute}
	if d := cmp.Diff([]any{want}, s.asked); d != "" {
		t.Error(d)
	}
	s.adoption.State, s.adoption.Reason = api.AdoptionReverted, "gateway 192.0.2.1 did not answer within 30s"
	if _, errs, status := c.run("host-port", "adopt", "eno1"); status == 0 ||
		!strings.Contains(errs, "did not answer") {
		t.Errorf("status %d: %s", status, errs)
	}
	s.adoption = api.Adoption{Name: "vmk0", Device: "eno1", State: api.AdoptionConfirmed,
		Declaration: "ports:\n- name: vmk0\n"}
	if out := c.must("host-port", "confirm"); !strings.Contains(out, "- name: vmk0") {
		t.Errorf("confirm: %s", out)
	}
	s.adoption.State, s.adoption.Missing = api.AdoptionGateway, []string{"192.0.2.1"}
	if out := c.must("host-port", "confirm", "vmk0"); !strings.Contains(out, "when gateway 192.0.2.1 answers") {
		t.Errorf("confirmed early: %s", out)
	}
	if out := c.must("host-port", "release", "vmk0"); !strings.Contains(out, "eno1 has its addresses") {
		t.Errorf("release: %s", out)
	}
}

func TestS81_TheCommandThatReleasesWaitsForTheGatewayByTheDevice(t *testing.T) {
	s := &standIn{adoption: api.Adoption{Name: "vmk0", Device: "eno1", State: api.AdoptionReleasing}}
	s.then = []api.Adoption{{Name: "vmk0", Device: "eno1", State: api.AdoptionReleasing},
		{Name: "vmk0", Device: "eno1", State: api.AdoptionReverted}}
	c := newConsole(t, s)
	if out := c.must("host-port", "release", "vmk0", "--force"); !strings.Contains(out, "eno1 has its addresses") ||
		len(s.then) != 0 {
		t.Errorf("%s; not asked: %v", out, s.then)
	}
	if d := cmp.Diff([]any{api.Release{Name: "vmk0", Force: true}}, s.asked); d != "" {
		t.Error(d)
	}
	s.adoption.State = api.AdoptionReleasing
	s.then = []api.Adoption{{Name: "vmk0", Device: "eno1", State: api.AdoptionConfirmed, Reason: "gateway 192.0.2.1 " +
		"did not answer by device eno1 within 30s"}}
	if _, errs, status := c.run("host-port", "release", "vmk0"); status == 0 ||
		!strings.Contains(errs, "vmk0 has the addresses of eno1 again: gateway 192.0.2.1 did not answer") {
		t.Errorf("status %d: %s", status, errs)
	}
}

func TestHostPortsAndTheirAdoptionsAreListed(t *testing.T) {
	s := &standIn{hostPorts: []api.HostPort{
		{Switch: "lab", Name: "vmk0", PortGroup: "management", Device: "vmk0", State: api.Up,
			Addresses: []string{"192.0.2.10/24"}, Adoption: &api.Adoption{Device: "eno1", State: api.AdoptionConfirm,
				Deadline: soon()}},
		{Switch: "lab", Name: "vmk1", PortGroup: "storage", Device: "vmk1", State: api.Up},
	}}
	c := newConsole(t, s)
	if out := c.must("host-port", "list"); !strings.Contains(out, "eno1: confirm within 1m") ||
		!strings.Contains(out, "vmk1") {
		t.Errorf("list:\n%s", out)
	}
	if out := c.must("host-port", "show", "vmk0"); !strings.Contains(out, "confirm within 1m") {
		t.Errorf("show:\n%s", out)
	}
	if _, _, status := c.run("host-port", "show", "nope"); status == 0 {
		t.Error("shows a port that is not there")
	}
	if _, _, status := c.run("host-port", "confirm", "a", "b"); status != cli.ExitUsage {
		t.Error("confirms two at once")
	}
}
