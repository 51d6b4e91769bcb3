package rpc

import (
	"encoding/json"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/spec"
)

// policyOf is what the definition sets for a static port on a host, in JSON; nil for nothing.
func (f portKeeper) policyOf(h *host, p *controllerv1.StaticPort) []byte {
	f.mu.Lock()
	v, err := withheld(f).definitionOf(f.inventory, h)
	f.mu.Unlock()
	if err != nil {
		return nil
	}
	settings, ok := v.SettingsOf(p.GetPort(), p.GetSwitch()+"/"+p.GetPortGroup())
	if !ok {
		return nil
	}
	return []byte(policyText(settings.Policy))
}

// policyText is a policy in JSON; "" for one that sets nothing.
func policyText(p spec.Policy) string {
	text, err := json.Marshal(p)
	if err != nil || string(text) == "{}" { // never fails: a policy is plain data
		return ""
	}
	return string(text)
}
