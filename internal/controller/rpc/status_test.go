package rpc

import (
	"testing"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/api"
)

// The status says what of the cluster is not as it should be: hosts by their states, and what ends soon.
func TestStatus_SaysWhatIsWrong(t *testing.T) {
	f := answersPeople(t)
	f.define(clusterText)
	m := f.up("esx1")
	f.made("ann", controllerv1.AccessRole_ACCESS_ROLE_VIEWER, 90*day)
	s := Front{f.Server}.Status(t.Context())
	if s.Hosts["up"] != 1 || len(s.Hosts) != 1 || len(s.Expiring) != 0 || s.RootStage != string(api.RootSteady) {
		t.Errorf("hosts %v, expiring %v, root %s", s.Hosts, s.Expiring, s.RootStage)
	}
	m.stop()
	f.await("the host is away", func() bool { return Front{f.Server}.Status(t.Context()).Hosts["disconnected"] == 1 })
	f.pass(84 * day)
	s = Front{f.Server}.Status(t.Context())
	found := map[string]api.ExpiryLevel{}
	for _, w := range s.Expiring {
		found[w.Subject+" "+w.Name] = w.Level
	}
	if found["token ann"] != api.ExpiryUrgent || found["host esx1"] != api.ExpiryUrgent {
		t.Errorf("after 84 days: %v", s.Expiring)
	}
	f.pass(10 * day)
	s = Front{f.Server}.Status(t.Context())
	for _, w := range s.Expiring {
		found[w.Subject+" "+w.Name] = w.Level
	}
	if found["token ann"] != api.ExpiryOver || found["host esx1"] != api.ExpiryOver || s.Healthy {
		t.Errorf("after 94 days: %v, healthy %v", s.Expiring, s.Healthy)
	}
	answer, err := f.viewer().status.GetControllerStatus(t.Context(), &controllerv1.GetControllerStatusRequest{})
	if err != nil || answer.GetHosts()["disconnected"] != 1 || len(answer.GetExpiring()) != len(s.Expiring) ||
		len(answer.GetFindings()) == 0 || answer.GetNow().AsTime().Before(time.Now()) {
		t.Errorf("over TLS: %v, %v", answer, err)
	}
}
