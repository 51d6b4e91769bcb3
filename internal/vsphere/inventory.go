package vsphere

import (
	"cmp"
	"slices"
	"strings"
)

// Inventory is what was read of one vCenter or of several. An object counts once, however often it is in the dumps: a
// switch is known by its UUID, a port group by its reference within its switch, a host by its reference and its name.
// References such as dvs-21 alone are those of one vCenter, and another one has the same.
type Inventory struct {
	switches []*object
	groups   []*object
	hosts    map[string]*object // by reference and name
	ports    map[string]string  // names of uplink ports by their switch's UUID and their key

	// source counts the dumps that were read, one for each vCenter within one; an object refers to those of its own.
	source int
	named  map[sourced]*object // switches and hosts by their references
}

// sourced is a reference in a dump.
type sourced struct {
	source int
	ref    ref
}

func (inv *Inventory) add(o *object) {
	if inv.named == nil {
		inv.hosts, inv.ports, inv.named = map[string]*object{}, map[string]string{}, map[sourced]*object{}
	}
	switch {
	case o.isSwitch():
		inv.addSwitch(o)
	case o.Self.Type == "DistributedVirtualPortgroup" && o.Config.DistributedVirtualSwitch != nil:
		o.source = inv.source
		inv.groups = append(inv.groups, o)
	case o.Self.Type == "HostSystem":
		key := o.Self.Value + "\x00" + o.named()
		if inv.hosts[key] == nil {
			inv.hosts[key] = o
		}
		inv.named[sourced{inv.source, o.reference()}] = inv.hosts[key]
	}
	for _, p := range o.Port {
		inv.ports[portKey(p.DvsUUID, p.Key)] = p.Config.Name
	}
}

func (inv *Inventory) addSwitch(o *object) {
	at := sourced{inv.source, o.reference()}
	if have := inv.named[at]; have != nil && have.identity() != o.identity() { // another vCenter's, in the same file
		inv.source++
		at.source = inv.source
	}
	i := slices.IndexFunc(inv.switches, func(s *object) bool { return s.identity() == o.identity() })
	if i >= 0 {
		inv.named[at] = inv.switches[i]
		return
	}
	o.source = inv.source
	inv.switches, inv.named[at] = append(inv.switches, o), o
}

func (o *object) isSwitch() bool {
	return o.Self.Type == "VmwareDistributedVirtualSwitch" || o.Self.Type == "DistributedVirtualSwitch"
}

// identity is what a switch has in every dump of it, and no other switch has.
func (o *object) identity() string {
	if o.Config.UUID != "" {
		return portKey(o.Config.UUID, "")
	}
	return o.Self.ServerGUID + "/" + o.Self.Value
}

// reference is how others of the same vCenter name the object: by its kind, since switches have two types.
func (o *object) reference() ref {
	r := o.Self
	if r.Type = "HostSystem"; o.isSwitch() {
		r.Type = "switch"
	}
	return r
}

// find returns the object to which one of a dump refers: the one in the same dump, else the only one there is.
func (inv *Inventory) find(kind string, to ref, source int) *object {
	if to.Type = kind; inv.named[sourced{source, to}] != nil {
		return inv.named[sourced{source, to}]
	}
	to.ServerGUID = ""
	best := -1
	for at := range inv.named {
		same := at.ref.Type == to.Type && at.ref.Value == to.Value
		if same && (best < 0 || distance(at.source, source) < distance(best, source)) {
			best, to.ServerGUID = at.source, at.ref.ServerGUID
		}
	}
	return inv.named[sourced{best, to}]
}

// distance orders dumps by how near they were read: the files of one vCenter are named one after the other.
func distance(a, b int) int { return 2*max(a-b, b-a) + max(0, min(1, a-b)) }

// groupsOf returns the port groups of a switch, each once, in the order in which they were read.
func (inv *Inventory) groupsOf(s *object) (list []*object) {
	seen := map[string]bool{}
	for _, g := range inv.groups {
		if inv.find("switch", *g.Config.DistributedVirtualSwitch, g.source) != s {
			continue
		}
		if key := cmp.Or(g.Config.Key, g.Self.Value); !seen[key] {
			seen[key] = true
			list = append(list, g)
		}
	}
	return list
}

// hostOf returns a host that a switch names, nil where the dump does not have it.
func (inv *Inventory) hostOf(s *object, to ref) *object { return inv.find("HostSystem", to, s.source) }

// portKey names a port among those of all switches. UUIDs are written with and without spaces.
func portKey(uuid, key string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "-", "").Replace(uuid)) + "/" + key
}
