package conflict

import (
	"maps"
	"slices"
)

// Instance is a host that is connected, to whichever controller, and reports that the adapter runs there.
type Instance struct {
	// Host is the host's id. Here: it is connected to this controller.
	Host string
	Here bool
	// Generation is that of the port there; 0 from a host of an earlier version.
	Generation uint64
	// Sure are the generations of other hosts, by their ids, of which the controller had heard when it asked this host
	// anew: the guest runs here still.
	Sure map[string]uint64
}

// knows reports whether the host said that the guest runs there after its controller had heard of another one.
func (i Instance) knows(other Instance) bool { return i.Sure[other.Host] == other.Generation }

// Numbered reports whether all hosts say generations.
func Numbered(list []Instance) bool {
	return !slices.ContainsFunc(list, func(i Instance) bool { return i.Generation == 0 })
}

// Clashing are the ids of the hosts on which guests run at once for certain: each said so knowing of the other.
func Clashing(list []Instance) map[string]bool {
	in := map[string]bool{}
	for k, a := range list {
		for _, b := range list[k+1:] {
			if a.knows(b) && b.knows(a) {
				in[a.Host], in[b.Host] = true, true
			}
		}
	}
	return in
}

// Highest is the instance with the highest generation, if it is the only one; nil otherwise.
func Highest(list []Instance) (top *Instance) {
	alone := false
	for k := range list {
		switch i := &list[k]; {
		case top == nil || i.Generation > top.Generation:
			top, alone = i, true
		case i.Generation == top.Generation:
			alone = false
		}
	}
	if !alone {
		return nil
	}
	return top
}

// Word is what a controller has heard of an adapter on a host.
type Word int

// The words.
const (
	// Nothing: the host is not connected to this controller, and no other one has said that the adapter runs there.
	Nothing Word = iota
	// Runs: the host reports that the adapter runs there, and will say so anew.
	Runs
	// Stopped: the host reports that it does not, or a migration explains that it does, or the host is not in the
	// cluster any more.
	Stopped
)

// Rivals are the ids of the hosts with which a host is in conflict, sorted: those with which it clashes, and those with
// which it was in conflict before, until it is known that the adapter does not run there any more. doubts are those of
// the latter about which others have to be asked.
func Rivals(host string, clash map[string]bool, before []string, word func(host string) Word) (
	rivals, doubts []string) {
	all := map[string]bool{}
	if clash[host] {
		maps.Copy(all, clash)
		delete(all, host)
	}
	for _, id := range before {
		if all[id] {
			continue
		}
		switch word(id) {
		case Stopped:
			continue
		case Nothing:
			doubts = append(doubts, id)
		case Runs:
		}
		all[id] = true
	}
	return slices.Sorted(maps.Keys(all)), doubts
}
