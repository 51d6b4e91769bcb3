package model

import (
	"fmt"
	"strings"
	"testing"

	"heddle/internal/plan"
)

func TestStepsNameThePortTheRuleAndTheLevel(t *testing.T) {
	fromGroup := policy(func(e *plan.Effective) {
		e.VLAN.From, e.ForgedTransmits.From = plan.FromPortGroup, plan.FromSwitch
	})
	r := newRig(t, vnic("a", access(10), fromGroup, learning), vnic("b", access(10), blocked),
		vnic("c", noForgery, fromGroup), up("u"))
	if res := r.send("a", eth(all, m(1))); res.Steps != nil {
		t.Errorf("steps without being asked: %v", res.Steps)
	}
	r.h.Explain(true)
	for _, c := range []struct {
		at    string
		frame []byte
		want  []string
	}{
		{"a", eth(all, m(2)), []string{
			"admit: port s/a may send it (forged transmits: accept, as set by the switch)",
			"classify: it belongs to VLAN 10: port s/a is in VLAN 10, as set by the port group",
			"learn: 06:00:00:00:00:02 is now known on port s/a in VLAN 10",
			"look up: ff:ff:ff:ff:ff:ff is a group address: it is for everybody in VLAN 10",
			"receiver: no copy for s/b (receiver-blocked): it is blocked, the built-in default",
			"deliver: a copy for s/u",
		}},
		{"c", eth(all, m(2)), []string{
			"admit: dropped (forged-transmit): the source 06:00:00:00:00:02 is not port s/c's MAC 02:00:00:00:00:03 " +
				"(forged transmits: reject, as set by the switch)",
		}},
	} {
		t.Run(c.at, func(t *testing.T) {
			var got []string
			for _, s := range r.send(c.at, c.frame).Steps {
				got = append(got, fmt.Sprintf("%s: %s", s.Stage, s.Text))
			}
			if g, w := strings.Join(got, "\n"), strings.Join(c.want, "\n"); g != w {
				t.Errorf("steps\n%s\nwant\n%s", g, w)
			}
		})
	}
}

func BenchmarkFrame(b *testing.B) {
	r := newRig(&testing.T{}, vnic("a", learning), vnic("b", learning), vnic("c"), up("u"))
	known, flood := eth(portMAC(2), portMAC(1)), eth(all, portMAC(1))
	for b.Loop() {
		r.h.Frame(id("a"), known, r.now)
		r.h.Frame(id("a"), flood, r.now)
	}
}
