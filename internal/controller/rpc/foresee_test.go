package rpc

import (
	"strings"
	"testing"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// What a change would drop names what everybody's ports send: only who sees the whole cluster is told. A host that is
// not connected is named.
func TestForesee_IsForWhoSeesTheWholeCluster(t *testing.T) {
	f := answersPeople(t)
	f.define(clusterText)
	f.joins("esx1") // and does not connect
	dry := func(p *person) *controllerv1.ForeseenByHosts {
		mine := must(p.GetDefinition(t.Context(), &controllerv1.GetDefinitionRequest{}))(t).GetContent()
		return must(p.ApplyDefinition(t.Context(), &controllerv1.ApplyDefinitionRequest{File: "f.yaml", DryRun: true,
			Content: strings.Replace(mine, "access: 10", "access: 11", 1)}))(t).GetForeseen()
	}
	all, _ := f.scoped("all", controllerv1.AccessRole_ACCESS_ROLE_NETWORK_ADMIN)
	if out := dry(all); len(out.GetUnasked()) != 1 || out.GetUnasked()[0].GetHost() != "esx1" || out.GetHosts() != 0 {
		t.Errorf("of the whole cluster: %v", out)
	}
	part, _ := f.scoped("part", controllerv1.AccessRole_ACCESS_ROLE_NETWORK_ADMIN, "dvs/web")
	if out := dry(part); out != nil {
		t.Errorf("who sees a part is told %v", out)
	}
}
