package vsphere

import (
	"fmt"
	"strings"
	"testing"
)

// dumped is a dump of one vCenter: a switch with that UUID and its port groups, and a host. All vCenters count their
// objects in the same way.
func dumped(uuid, name, host string, groups ...string) string {
	text := fmt.Sprintf(`{"self": {"type": "VmwareDistributedVirtualSwitch", "value": "dvs-21"}, "name": %[1]q, "config":
		{"name": %[1]q, "uuid": %[2]q, "maxMtu": 1500, "uplinkPortPolicy": {"uplinkPortName": ["Uplink 1"]},
		"host": [{"config": {"host": {"type": "HostSystem", "value": "host-1"}}}]}}`, name, uuid)
	for i, g := range groups {
		text += fmt.Sprintf(`{"self": {"type": "DistributedVirtualPortgroup", "value": "dvportgroup-%[1]d"}, "config":
			{"key": "dvportgroup-%[1]d", "name": %[2]q, "type": "ephemeral", "distributedVirtualSwitch":
			{"type": "VmwareDistributedVirtualSwitch", "value": "dvs-21"}}}`, 30+i, g)
	}
	return text + fmt.Sprintf(`{"self": {"type": "HostSystem", "value": "host-1"}, "name": %q}`, host)
}

// An object counts once, whatever is in the dumps twice; two vCenters' objects are two, though their references are the
// same.
func TestAnObjectCountsOnce(t *testing.T) {
	const a, b = "50 13 00 01", "50 13 00 02"
	one, other := dumped(a, "dvs", "esx1", "web", "db"), dumped(b, "other", "esx9", "web", "app", "lab")
	switchOf := func(dump string) string { return dump[:strings.Index(dump, `{"self": {"type": "Dist`)] }
	for name, c := range map[string]struct {
		dumps                   []string
		switches, groups, hosts int
	}{
		"once":                            {[]string{one}, 1, 2, 1},
		"a file that is named twice":      {[]string{one, one}, 1, 2, 1},
		"a file that was appended to":     {[]string{one + one}, 1, 2, 1},
		"its switch in another file":      {[]string{switchOf(one), one[len(switchOf(one)):]}, 1, 2, 1},
		"some of it again":                {[]string{one, dumped(a, "dvs", "esx1", "web")}, 1, 2, 1},
		"two vCenters":                    {[]string{one, other}, 2, 5, 2},
		"two vCenters in one file":        {[]string{one + other}, 2, 5, 2},
		"two vCenters, each twice":        {[]string{one, other, other, one}, 2, 5, 2},
		"two vCenters, twice in one file": {[]string{one + other + one + other}, 2, 5, 2},
	} {
		t.Run(name, func(t *testing.T) {
			inv := &Inventory{}
			for i, dump := range c.dumps {
				if err := inv.Read(fmt.Sprint(i), strings.NewReader(dump)); err != nil {
					t.Fatal(err)
				}
			}
			r, err := inv.Translate(Options{})
			if err != nil {
				t.Fatal(err)
			}
			if r.Switches != c.switches || r.PortGroups != c.groups || r.Hosts != c.hosts {
				t.Errorf("%d switches, %d port groups, %d hosts; want %d, %d, %d", r.Switches, r.PortGroups, r.Hosts,
					c.switches, c.groups, c.hosts)
			}
		})
	}
}
