package store

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// holder is the value of an index key: which port has what only one may have.
type holder struct {
	Group string `json:"group"`
	Port  string `json:"port"`
}

// Names of index keys. Parts are quoted where they may contain slashes.
func nicIndex(b *Binding) string {
	return "nic/" + strconv.Quote(b.VM) + "/" + strconv.Quote(b.Adapter)
}
func poolIndex(group string) string { return "pool/" + group }

// VNIIndex is the name under which a change reserves a VNI for its port group.
func VNIIndex(vni uint32) string { return "vni/" + strconv.FormatUint(uint64(vni), 10) }

// macIndex is a MAC in the segment where it has to be the only one: a VNI, or else a port group.
func macIndex(group string, b *Binding) string {
	if b.VNI != 0 {
		return VNIIndex(b.VNI) + "/mac/" + b.MAC
	}
	return "group/" + group + "/mac/" + b.MAC
}

// Taken is returned when a port, an adapter, a MAC or a VNI is somebody else's.
type Taken struct {
	// What is "port", "adapter", "MAC" or "VNI".
	What string
	// Name is which: the port's identifier, VM/adapter, the MAC, the VNI.
	Name string
	// Group and Port say who has it; Port is empty for a VNI.
	Group, Port string
	// Binding is that of the port, where it is known.
	Binding *Binding
}

func (t *Taken) Error() string {
	text := fmt.Sprintf("%s %s is taken by port group %s", t.What, t.Name, t.Group)
	if t.Port != "" && t.What != "port" {
		text += ", port " + t.Port
	}
	if t.Binding != nil {
		text += fmt.Sprintf(" (VM %s, adapter %s, on host %s)", t.Binding.VM, t.Binding.Adapter, t.Binding.Host)
	}
	return text
}

// Reserved is returned when a name that a change wants to reserve belongs to another object.
type Reserved struct{ Name, Owner string }

func (r *Reserved) Error() string { return fmt.Sprintf("%s belongs to %s", r.Name, r.Owner) }

// reserve takes a name for an owner. It may be the owner's already.
func (t *tx) reserve(name, owner string) error {
	key := t.keys.index(name)
	e := t.get(key)
	switch {
	case !e.exists():
		t.put(key, []byte(owner))
	case string(e.value) != owner:
		return &Reserved{Name: name, Owner: string(e.value)}
	}
	return nil
}

// free gives a name back, if it is the owner's.
func (t *tx) free(name, owner string) {
	key := t.keys.index(name)
	if e := t.get(key); e.exists() && string(e.value) == owner {
		t.del(key)
	}
}

// holds reads who has a name of the index; nil = nobody.
func (t *tx) holds(name string) (*holder, error) {
	e := t.get(t.keys.index(name))
	if !e.exists() {
		return nil, nil
	}
	var h holder
	if err := json.Unmarshal(e.value, &h); err != nil {
		return nil, fmt.Errorf("store: the index of %s: %w", name, err)
	}
	return &h, nil
}

func (t *tx) hold(name string, h holder) { t.put(t.keys.index(name), mustJSON(h)) }

// pool is how many ports a port group has.
type pool struct {
	Ports int `json:"ports"`
}

func (t *tx) pool(group string) (pool, error) {
	var p pool
	e := t.get(t.keys.index(poolIndex(group)))
	if !e.exists() {
		return p, nil
	}
	if err := json.Unmarshal(e.value, &p); err != nil {
		return p, fmt.Errorf("store: the ports of %s: %w", group, err)
	}
	return p, nil
}

func (t *tx) setPool(group string, p pool) {
	key := t.keys.index(poolIndex(group))
	if p.Ports == 0 {
		t.del(key)
		return
	}
	t.put(key, mustJSON(p))
}
