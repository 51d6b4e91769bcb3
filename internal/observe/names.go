package observe

import (
	"maps"
	"slices"
	"strings"

	"heddle/internal/abi"
)

// Prefixes of the names of drops and refusals by reason.
const (
	dropPrefix    = "drop."
	refusedPrefix = "refused."
)

// named is one counter that is no reason's.
type named struct {
	name  string
	value *uint64
}

// ClassName is the name of a class of frames (abi.ClassUnicast and so on); "" for none.
func ClassName(class int) string {
	switch class {
	case abi.ClassUnicast:
		return "unicast"
	case abi.ClassMulticast:
		return "multicast"
	case abi.ClassBroadcast:
		return "broadcast"
	}
	return ""
}

// named lists the counters that are no reason's.
func (c *Counters) named() (list []named) {
	for _, by := range []struct {
		name  string
		count *[abi.Classes]uint64
	}{{"packetsIn", &c.PacketsIn}, {"bytesIn", &c.BytesIn}, {"packetsOut", &c.PacketsOut},
		{"bytesOut", &c.BytesOut}} {
		for class := range by.count {
			list = append(list, named{by.name + "." + ClassName(class), &by.count[class]})
		}
	}
	return append(list, named{"bytesInFromPnic", &c.BytesInFromPnic}, named{"bytesOutToPnic", &c.BytesOutToPnic},
		named{"delivered", &c.Delivered}, named{"packetsToHost", &c.PacketsToHost},
		named{"packetsFromHost", &c.PacketsFromHost}, named{"packetsFromHostKept", &c.PacketsFromHostKept},
		named{"packetsFromHostDropped", &c.PacketsFromHostDropped}, named{"macMoves", &c.MACMoves},
		named{"macNotLearnedAllowed", &c.MACNotLearnedAllowed}, named{"unknownNotFlooded", &c.UnknownNotFlooded},
		named{"unknownFlooded", &c.UnknownFlooded})
}

// Named is one counter under a name that all versions understand: "packetsIn.unicast", "drop.storm-control".
type Named struct {
	Name  string `json:"name"`
	Value uint64 `json:"value"`
}

// Names returns the counters that are not 0. How many MACs are held is no count, and is left out.
func (c Counters) Names() (list []Named) {
	for _, n := range c.named() {
		if *n.value != 0 {
			list = append(list, Named{n.name, *n.value})
		}
	}
	for _, by := range []struct {
		prefix string
		counts map[abi.Reason]uint64
	}{{dropPrefix, c.Drops}, {refusedPrefix, c.Refused}} {
		for _, r := range slices.Sorted(maps.Keys(by.counts)) {
			if by.counts[r] != 0 {
				list = append(list, Named{by.prefix + r.String(), by.counts[r]})
			}
		}
	}
	return list
}

// Set sets the counter of that name; false if this version has none.
func (c *Counters) Set(name string, value uint64) bool {
	for _, n := range c.named() {
		if n.name == name {
			*n.value = value
			return true
		}
	}
	to := &c.Drops
	reason, ok := strings.CutPrefix(name, dropPrefix)
	if !ok {
		if reason, ok = strings.CutPrefix(name, refusedPrefix); !ok {
			return false
		}
		to = &c.Refused
	}
	r, ok := abi.ParseReason(reason)
	if !ok {
		return false
	}
	if *to == nil {
		*to = map[abi.Reason]uint64{}
	}
	(*to)[r] = value
	return true
}
