package live

import (
	"context"
	"fmt"
	"strings"

	"heddle/internal/api"
	"heddle/internal/lab/experiment"
)

// The segments that the moving port group changes between.
const (
	oldVLAN = 10
	newVLAN = 20
)

// watcherIn is the VM that sees every frame of a segment.
func watcherIn(vlan int) string { return fmt.Sprintf("w%d", vlan) }

// labFile is the lab: two VMs with a stream between them, and one in each segment that is promiscuous.
const labFile = `
name: live-change
title: changes of running ports
hosts:
  - name: esx1
    config:
      switches:
        - name: lab
          kind: distributed
          uplinks: [{name: uplink1, device: eno1}, {name: uplink2, device: eno2}]
          portGroups:
            - {name: movers, vlan: {access: 10}}
            - {name: other, vlan: {access: 10}}
            - {name: watch10, vlan: {access: 10}, security: {promiscuous: accept}}
            - {name: watch20, vlan: {access: 20}, security: {promiscuous: accept}}
      ports:
        - {name: a, switch: lab, portGroup: movers, device: vm-a}
        - {name: b, switch: lab, portGroup: movers, device: vm-b}
        - {name: w10, switch: lab, portGroup: watch10, device: vm-w10}
        - {name: w20, switch: lab, portGroup: watch20, device: vm-w20}
vms:
  - {name: a, host: esx1, addresses: [192.0.2.1/24]}
  - {name: b, host: esx1, addresses: [192.0.2.2/24]}
  - {name: w10, host: esx1}
  - {name: w20, host: esx1}
switches:
  - {name: tor}
links:
  - {a: esx1/eno1, b: tor/p1}
  - {a: esx1/eno2, b: tor/p2}
`

// receiverAddress is b's.
const receiverAddress = "192.0.2.2"

// setting is what a row changes of the configuration; the zero value is the initial state.
type setting struct {
	vlan, mtu int
	group     string // more fields of the port group
}

// config is the host's configuration with all ports.
func (r *rig) config(s setting) string {
	vlan, mtu := oldVLAN, 1500
	if s.vlan != 0 {
		vlan = s.vlan
	}
	if s.mtu != 0 {
		mtu = s.mtu
	}
	var b strings.Builder
	fmt.Fprintf(&b, `switches:
  - name: lab
    kind: distributed
    mtu: %d
    uplinks: [{name: uplink1, device: eno1}, {name: uplink2, device: eno2}]
    portGroups:
      - {name: movers, vlan: {access: %d}%s}
      - {name: other, vlan: {access: 10}}
      - {name: watch10, vlan: {access: 10}, security: {promiscuous: accept}}
      - {name: watch20, vlan: {access: 20}, security: {promiscuous: accept}}
ports:
  - {name: a, switch: lab, portGroup: movers, device: vm-a}
  - {name: b, switch: lab, portGroup: movers, device: vm-b}
  - {name: w10, switch: lab, portGroup: watch10, device: vm-w10}
  - {name: w20, switch: lab, portGroup: watch20, device: vm-w20}
`, mtu, vlan, s.group)
	for i := range r.ports - 4 {
		fmt.Fprintf(&b, "  - {name: idle%d, switch: lab, portGroup: movers, device: %s}\n", i, idleDevice(i))
	}
	return b.String()
}

// row is one kind of change: what the odd rounds do, and what the even ones do to go back.
type row struct {
	name, setting string
	there, back   func(context.Context, *rig) (*api.Applied, error)
	// leaves says that the stream is in another segment afterwards.
	leaves bool
	// quiet: there is nothing to change.
	quiet bool
}

func rows() []row {
	file := func(s setting) func(context.Context, *rig) (*api.Applied, error) {
		return func(ctx context.Context, r *rig) (*api.Applied, error) { return r.apply(ctx, r.config(s)) }
	}
	move := func(group string) func(context.Context, *rig) (*api.Applied, error) {
		return func(ctx context.Context, r *rig) (*api.Applied, error) { return r.move(ctx, group) }
	}
	before := file(setting{})
	return []row{
		{name: "nothing", setting: "the same file again", there: before, back: before, quiet: true},
		{name: "vlan", setting: "the port group's VLAN, all ports", there: file(setting{vlan: newVLAN}), back: before,
			leaves: true},
		{name: "security", setting: "MAC learning and forged transmits", back: before,
			there: file(setting{group: ", security: {forgedTransmits: accept, macLearning: {enabled: true}}"})},
		{name: "mtu", setting: "the switch's MTU", there: file(setting{mtu: 1400}), back: before},
		{name: "teaming", setting: "the active uplinks and the policy", back: before,
			there: file(setting{group: ", teaming: {policy: ip-hash, active: [uplink2]}"})},
		{name: "port-move", setting: "one port to another port group", there: move("other"), back: move("movers")},
	}
}

// chosen finds rows by name; without names it is all rows.
func chosen(names []string) ([]row, error) {
	return experiment.Pick(Name, rows(), func(r row) string { return r.name }, names)
}

// RowNames are the names of the experiment's rows.
func RowNames() []string { return experiment.RowNames(rows(), func(r row) string { return r.name }) }
