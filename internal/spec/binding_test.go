package spec

import (
	"strings"
	"testing"
)

func TestStaticPorts_NumberAndLimit(t *testing.T) {
	for name, c := range map[string]struct {
		group         PortGroup
		number, limit int
	}{
		"ephemeral":         {PortGroup{}, 0, 0},
		"static":            {PortGroup{Binding: Static}, 8, 8},
		"static, numbered":  {PortGroup{Binding: Static, Ports: PortCount{Number: 3}}, 3, 3},
		"elastic":           {PortGroup{Binding: Elastic}, 8, MaxStaticPorts},
		"elastic, numbered": {PortGroup{Binding: Elastic, Ports: PortCount{Number: 3, Limit: 5}}, 3, 5},
	} {
		t.Run(name, func(t *testing.T) {
			if number, limit := c.group.StaticPorts(); number != c.number || limit != c.limit {
				t.Errorf("%d ports up to %d", number, limit)
			}
		})
	}
}

func TestDefinition_FaultsOfKindsOfPorts(t *testing.T) {
	for name, c := range map[string]struct{ group, want string }{
		"good":                   {"{name: g, binding: elastic, ports: {number: 2, limit: 9}, labels: {zone: a}}", ""},
		"no kind":                {"{name: g, binding: dynamic}", "must be ephemeral, static or elastic"},
		"number of an ephemeral": {"{name: g, ports: {number: 2}}", "has as many as guests connect"},
		"limit of a static":      {"{name: g, binding: static, ports: {limit: 9}}", "does not grow"},
		"limit below the number": {"{name: g, binding: elastic, ports: {limit: 7}}", "the limit is below 8"},
		"too many":               {"{name: g, binding: static, ports: {number: 65537}}", "1–65536 static ports"},
		"none":                   {"{name: g, binding: static, ports: {number: 0}}", "1–65536 static ports"},
		"odd label":              {"{name: g, labels: {zone: \"\\t\"}}", "portGroups[g].labels.zone"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseDefinition("fleet.yaml", []byte("switches:\n- {name: dvs, portGroups: ["+c.group+"]}\n"))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
	for name, group := range map[string]string{"ports": "{name: g, binding: static, ports: {number: 2}}",
		"labels": "{name: g, labels: {zone: a}}"} {
		t.Run(name+" in a host's file", func(t *testing.T) {
			_, err := Parse("host.yaml", []byte("switches:\n- {name: lan, portGroups: ["+group+"]}\n"))
			if err == nil || !strings.Contains(err.Error(), "only a definition for many hosts has this") {
				t.Errorf("error %v", err)
			}
		})
	}
	if _, err := Parse("host.yaml",
		[]byte("switches:\n- {name: lan, portGroups: [{name: g, binding: static}]}\n")); err != nil {
		t.Errorf("what a host keeps that leaves its cluster: %v", err)
	}
}
