package backup

import (
	"cmp"
	"fmt"
	"slices"
)

// PortChange is a static port that is another in one of two backups.
type PortChange struct {
	Port, Group string
	// Change is added, removed, bound, released or changed.
	Change string
	// Old and New say whose it was and is; "" for nobody's.
	Old, New string
}

// PortChanges are the static ports that differ between two backups, by number.
func PortChanges(was, now *File) []PortChange {
	before, after := was.byNumber(), now.byNumber()
	var list []PortChange
	for id, a := range after {
		b, there := before[id]
		c := PortChange{Port: id, Group: a.group, Old: b.owner, New: a.owner}
		switch {
		case !there || b.group != a.group:
			c.Change = "added"
		case b.owner == a.owner:
			continue
		case b.owner == "":
			c.Change = "bound"
		case a.owner == "":
			c.Change = "released"
		default:
			c.Change = "changed"
		}
		list = append(list, c)
	}
	for id, b := range before {
		if a, there := after[id]; !there || a.group != b.group {
			list = append(list, PortChange{Port: id, Group: b.group, Change: "removed", Old: b.owner})
		}
	}
	slices.SortFunc(list, func(a, b PortChange) int {
		return cmp.Or(cmp.Compare(len(a.Port), len(b.Port)), cmp.Compare(a.Port, b.Port),
			cmp.Compare(a.Change, b.Change))
	})
	return list
}

// NameHosts gives hosts of static ports that have no name here the one that another backup has for them: after an
// import they are those of the cluster that it is of, until they have joined again.
func (f *File) NameHosts(by *File) {
	names := map[string]string{}
	for _, h := range by.Hosts {
		names[h.ID] = h.Name
	}
	for _, g := range f.StaticPorts {
		for n := range g.Bound {
			p := &g.Bound[n]
			p.Host = cmp.Or(p.Host, names[p.HostID])
		}
	}
}

type owned struct{ group, owner string }

func (f *File) byNumber() map[string]owned {
	all := map[string]owned{}
	for _, g := range f.StaticPorts {
		for _, id := range g.Free {
			all[id] = owned{g.Group, ""}
		}
		for _, p := range g.Bound {
			all[p.ID] = owned{g.Group, p.owner()}
		}
	}
	return all
}

// owner says whose a port is.
func (p *Port) owner() string {
	text := fmt.Sprintf("adapter %s of VM %s", p.Adapter, p.VM)
	if at := cmp.Or(p.Host, p.HostID); at != "" {
		text += " on " + at
	}
	if p.MAC != "" {
		text += ", " + p.MAC
	}
	return text
}

// Changed are the objects that have the same name in both backups, and are not the same: the one was removed and
// another made. A line each.
func Changed(was, now *File) (lines []string) {
	for kind, names := range was.Identifiers {
		for name, id := range names {
			if other, there := now.Identifiers[kind][name]; there && other != id {
				lines = append(lines, fmt.Sprintf("%s %s is another object than in the backup: that one was "+
					"removed, and "+
					"this one made since", kind, name))
			}
		}
	}
	slices.Sort(lines)
	return lines
}
