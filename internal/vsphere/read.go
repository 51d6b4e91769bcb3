package vsphere

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// MostBytes limits a dump: one of 100 switches with 1,000 port groups each takes some 200 MB.
const MostBytes = 1 << 30

// Inventory is what was read of a vCenter.
type Inventory struct {
	switches []*object
	groups   map[string][]*object // by the id of their switch
	hosts    map[string]*object   // by id
	ports    map[string]string    // names of uplink ports by their switch's UUID and their key
}

// Read adds what a dump has: managed objects as JSON, one after the other or in lists, such as govc object.collect
// -json writes, and uplink ports as govc dvs.portgroup.info -json writes them. Objects of other types are left out.
func (inv *Inventory) Read(filename string, r io.Reader) error {
	in := &io.LimitedReader{R: r, N: MostBytes + 1}
	dec := json.NewDecoder(in)
	for n := 1; ; n++ {
		var several objects
		err := dec.Decode(&several)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case in.N == 0:
			return fmt.Errorf("%s is larger than %d MiB: dump fewer switches at a time", filename, MostBytes>>20)
		case err != nil:
			return fmt.Errorf("%s, object %d, before byte %d: this is no dump in JSON: %w", filename, n,
				dec.InputOffset(), err)
		}
		for i := range several {
			if err := several[i].collect(); err != nil {
				return fmt.Errorf("%s, object %d: %w", filename, n, err)
			}
			inv.add(&several[i])
		}
	}
}

// objects are one object, or a list of some.
type objects []object

func (o *objects) UnmarshalJSON(b []byte) error {
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, (*[]object)(o))
	}
	*o = make(objects, 1)
	return json.Unmarshal(b, &(*o)[0])
}

func (inv *Inventory) add(o *object) {
	if inv.groups == nil {
		inv.groups, inv.hosts, inv.ports = map[string][]*object{}, map[string]*object{}, map[string]string{}
	}
	switch o.Self.Type {
	case "VmwareDistributedVirtualSwitch", "DistributedVirtualSwitch":
		inv.switches = append(inv.switches, o)
	case "DistributedVirtualPortgroup":
		if s := o.Config.DistributedVirtualSwitch; s != nil {
			inv.groups[s.Value] = append(inv.groups[s.Value], o)
		}
	case "HostSystem":
		inv.hosts[o.Self.Value] = o
	}
	for _, p := range o.Port {
		inv.ports[portKey(p.DvsUUID, p.Key)] = p.Config.Name
	}
}

// portKey names a port among those of all switches. UUIDs are written with and without spaces.
func portKey(uuid, key string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "-", "").Replace(uuid)) + "/" + key
}

// named is the name of an object; vCenter writes %, / and \ in names as %25, %2f and %5c.
func (o *object) named() string {
	name := o.Config.Name
	if name == "" {
		name = o.Name
	}
	if name == "" {
		name = o.Self.Value
	}
	return strings.NewReplacer("%2f", "/", "%2F", "/", "%5c", `\`, "%5C", `\`, "%25", "%").Replace(name)
}
