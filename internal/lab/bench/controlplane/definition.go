package controlplane

import (
	"fmt"
	"strings"
)

// Extent of the definition.
const (
	groups = 50 // port groups
	racks  = 4  // templates with other devices, each for a part of the hosts
	// staticGroups is how many port groups have static ports.
	staticGroups = 8
)

// definition is what the cluster has. Changing a field is a change of one kind.
type definition struct {
	vlan  int  // of one of the port groups
	swap  bool // which uplink is active and which is standby, for the whole switch
	spare bool // there is one more port group, which no port uses
	// static: there are port groups whose ports are bound to the adapters of VMs.
	static bool
}

// text is the definition as a file.
func (d definition) text() string {
	var b strings.Builder
	active, standby := "uplink1", "uplink2"
	if d.swap {
		active, standby = standby, active
	}
	fmt.Fprintf(&b, "switches:\n- name: dvs\n  uplinks: [{name: uplink1}, {name: uplink2}]\n"+
		"  defaults: {teaming: {policy: explicit, active: [%s], standby: [%s]}}\n  portGroups:\n", active, standby)
	for i := range groups {
		vlan := 100 + i
		if i == 0 {
			vlan = d.vlan
		}
		fmt.Fprintf(&b, "  - {name: %s, vlan: {access: %d}}\n", groupName(i), vlan)
	}
	if d.spare {
		b.WriteString("  - {name: spare, vlan: {access: 99}}\n")
	}
	for i := range staticGroups {
		if d.static {
			fmt.Fprintf(&b, "  - {name: %s, vlan: {access: %d}, binding: elastic}\n", staticName(i), 200+i)
		}
	}
	b.WriteString("templates:\n")
	for i := range racks {
		fmt.Fprintf(&b, "- name: %[1]s\n  labels: {rack: %[1]s}\n  switches:\n  - {name: dvs, uplinks: [{name: "+
			"uplink1, device: ens%[2]df0}, {name: uplink2, device: ens%[2]df1}]}\n", rackName(i), i)
	}
	return b.String()
}

// groupNames are those of the port groups.
var groupNames = func() (names [groups]string) {
	for i := range names {
		names[i] = fmt.Sprintf("group%d", i)
	}
	return names
}()

func groupName(i int) string { return groupNames[i%groups] }

func staticName(i int) string { return fmt.Sprintf("static%d", i%staticGroups) }

func rackName(i int) string { return rackNumbered(i % racks) }

func rackNumbered(rack int) string { return fmt.Sprintf("rack%d", rack) }
