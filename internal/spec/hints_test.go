package spec

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHints_NamePoliciesThatContradictEachOther(t *testing.T) {
	const file = `switches:
  - name: lab
    kind: distributed
    checks: {reversePathPromiscuous: %v}
    uplinks: [{name: u1}, {name: u2}]
    lags: [%s]
    defaults: {security: {%s}}
    portGroups: [{name: nested, security: {%s}, overrides: {security: true}}]
ports: [{name: vm1, switch: lab, portGroup: nested, security: {%s}}]
`
	const group, port = "heddle.yaml:8:18: switches[lab].portGroups[nested]: ", "heddle.yaml:9:9: ports[vm1]: "
	const learns, forged, looks = "macLearning: {enabled: true}", "forgedTransmits: accept", "promiscuous: accept"
	const blind = "MAC learning is on and forged transmits are rejected, so nothing is ever learned: set security: " +
		"{forgedTransmits: accept}, or leave learning off"
	const both = "MAC learning is on and promiscuous mode is accepted: with learning a guest gets the frames of its " +
		"addresses without it; set security: {promiscuous: reject}"
	const twice = "promiscuous mode is accepted on a switch of several uplinks whose checks.reversePathPromiscuous " +
		"is off: what the physical network floods comes in up to 2 times; leave the check on"
	for _, c := range []struct {
		name                        string
		check                       bool
		lags, defaults, group, port string
		want                        []string
	}{
		{name: "nothing set", check: true},
		{name: "learning as it should be", check: true, group: learns + ", " + forged},
		{name: "forged transmits accepted above", check: true, defaults: forged, group: learns},
		{name: "nothing can be learned", check: true, group: learns, want: []string{group + blind}},
		{name: "forged transmits rejected at the port", check: true, group: learns + ", " + forged,
			port: "forgedTransmits: reject", want: []string{port + blind}},
		{name: "learning and promiscuous", check: true, group: learns + ", " + forged + ", " + looks,
			want: []string{group + both}},
		{name: "promiscuous without the check", defaults: looks, want: []string{group + twice}},
		{name: "promiscuous at a port", port: looks, want: []string{port + twice}},
		{name: "promiscuous with the check", check: true, defaults: looks},
		{name: "promiscuous behind one LAG", lags: "{name: lag1, uplinks: [u1, u2]}", defaults: looks},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := mustParse(t, fmt.Sprintf(file, c.check, c.lags, c.defaults, c.group, c.port)).Hints()
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}
