package state

import (
	"slices"
	"strings"

	"heddle/internal/slice"
)

// mostKept bounds how many port groups are remembered that no port uses at the moment.
const mostKept = 64

// KeptObject is a port group, or a switch with such port groups, that this host goes on with although the definition
// lacks it, since ports use it. The list is replaced and never changed in place.
type KeptObject struct {
	slice.Object
	// Epoch and Revision are those of the last version that had it.
	Epoch    int64 `json:"epoch"`
	Revision int64 `json:"revision"`
	// Ports are the ports, by name, that may use the port group: those that did when it was removed. A guest that is
	// stopped may so start again. Empty for a switch.
	Ports []string `json:"ports,omitempty"`
	// Without says what of the object was left out, as it does not fit the definition any more; "" for nothing.
	Without string `json:"without,omitempty"`
}

// Use is a port, by name, and its port group SWITCH/GROUP.
type Use struct{ Port, Group string }

// Keeping is what becomes of the kept objects by a change.
type Keeping struct {
	// Objects are to be remembered.
	Objects []KeptObject
	// Active are those of them that the host forwards by now.
	Active []slice.Object
	// Strangers are new ports in kept port groups, which are not for them.
	Strangers []Use
}

// KeepObjects decides which objects of a version before, and of those kept so far, a host keeps beside the next
// version. before and now are the uses before the change and after it. A port group is active while a port uses it.
func KeepObjects(kept []KeptObject, was, next *Slice, before, now []Use) Keeping {
	k := keeper{was: was, next: next, kept: map[slice.Key]*KeptObject{}}
	for _, o := range kept {
		if _, ok := next.Get(o.Key); !ok {
			o.Ports = slices.Clone(o.Ports)
			k.kept[o.Key] = &o
			k.order = append(k.order, o.Key)
		}
	}
	uses := map[Use]bool{}
	for _, u := range before {
		uses[u] = true
	}
	group := map[string]string{}
	for _, u := range now {
		group[u.Port] = u.Group
	}
	for _, o := range k.kept { // a port that is elsewhere now has left
		o.Ports = slices.DeleteFunc(o.Ports, func(name string) bool {
			in, ok := group[name]
			return ok && in != o.Name
		})
	}
	var out Keeping
	active := map[slice.Key]bool{}
	for _, u := range now {
		key := slice.Key{Kind: slice.PortGroup, Name: u.Group}
		o := k.object(key)
		switch {
		case o == nil:
			continue
		case slices.Contains(o.Ports, u.Port):
		case uses[u]:
			o.Ports = append(o.Ports, u.Port)
		default:
			out.Strangers = append(out.Strangers, u)
			continue
		}
		active[key] = true
	}
	k.switches(active)
	k.bound(active)
	for _, key := range k.order {
		o := k.kept[key]
		if o == nil {
			continue
		}
		slices.Sort(o.Ports)
		out.Objects = append(out.Objects, *o)
		if active[key] {
			out.Active = append(out.Active, o.Object)
		}
	}
	slices.SortFunc(out.Active, func(a, b slice.Object) int { return a.Compare(b.Key) })
	return out
}

// keeper finds out which objects are kept.
type keeper struct {
	was, next *Slice
	kept      map[slice.Key]*KeptObject
	order     []slice.Key // the oldest first
}

// object is one that is kept, nil for none: the next version has it, or nothing does.
func (k *keeper) object(key slice.Key) *KeptObject {
	if o := k.kept[key]; o != nil {
		return o
	}
	if _, ok := k.next.Get(key); ok {
		return nil
	}
	o, ok := k.was.Get(key)
	if !ok {
		return nil
	}
	k.kept[key] = &KeptObject{Object: o, Epoch: k.was.Epoch, Revision: k.was.Revision}
	k.order = append(k.order, key)
	return k.kept[key]
}

// switches keeps the switches of kept port groups, and no others; those of active ones are active.
func (k *keeper) switches(active map[slice.Key]bool) {
	used := map[slice.Key]bool{}
	for _, key := range slices.Clone(k.order) {
		o := k.kept[key]
		if key.Kind != slice.PortGroup {
			continue
		}
		if len(o.Ports) == 0 { // nobody may use it any more
			delete(k.kept, key)
			continue
		}
		name, _, _ := strings.Cut(key.Name, "/")
		sw := slice.Key{Kind: slice.Switch, Name: name}
		if k.object(sw) != nil {
			used[sw] = true
			active[sw] = active[sw] || active[key]
		}
	}
	for key := range k.kept {
		if key.Kind == slice.Switch && !used[key] {
			delete(k.kept, key)
		}
	}
}

// bound forgets the oldest port groups that no port uses, where those are too many.
func (k *keeper) bound(active map[slice.Key]bool) {
	idle := 0
	for _, key := range slices.Backward(k.order) {
		if k.kept[key] == nil || active[key] || key.Kind != slice.PortGroup {
			continue
		}
		if idle++; idle > mostKept {
			delete(k.kept, key)
		}
	}
}

// Released removes a port, whose guest was removed, from those that may use kept port groups.
func Released(kept []KeptObject, port string) (left []KeptObject) {
	for _, o := range kept {
		if i := slices.Index(o.Ports, port); i >= 0 {
			o.Ports = slices.Delete(slices.Clone(o.Ports), i, i+1)
		}
		left = append(left, o)
	}
	return left
}
