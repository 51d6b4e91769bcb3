package access

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"heddle/internal/platform/access/roles"
	"heddle/internal/platform/pki"
)

// LocalGroup is a group of people and tokens that the controllers keep, beside those that an identity provider names.
type LocalGroup struct {
	Name    string      `json:"name"`
	Members []roles.Who `json:"members,omitempty"`
	Made    time.Time   `json:"made,omitzero"`
	By      string      `json:"by,omitempty"`
}

// Book are all grants and local groups of the cluster. It does not change: a change makes another one. nil is empty.
type Book struct {
	grants map[roles.Who][]roles.Grant
	groups map[roles.Who][]string // the local groups of a member
}

// NewBook makes a book of the documents of grants and groups. What can't be read grants nothing, and is returned as a
// fault.
func NewBook(grants, groups map[string][]byte) (b *Book, faults []error) {
	b = &Book{grants: map[roles.Who][]roles.Grant{}, groups: map[roles.Who][]string{}}
	for id, doc := range grants {
		var g roles.Grant
		err := json.Unmarshal(doc, &g)
		if g.ID = id; err == nil {
			err = g.Check()
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("grant %s counts no more: %w", id, err))
			continue
		}
		b.grants[g.Who] = append(b.grants[g.Who], g)
	}
	for name, doc := range groups {
		var g LocalGroup
		if err := json.Unmarshal(doc, &g); err != nil {
			faults = append(faults, fmt.Errorf("group %s has no members any more: %w", name, err))
			continue
		}
		for _, m := range g.Members {
			b.groups[m] = append(b.groups[m], name)
		}
	}
	for who := range b.grants {
		slices.SortFunc(b.grants[who], func(x, y roles.Grant) int { return x.Made.Compare(y.Made) })
	}
	for who := range b.groups {
		slices.Sort(b.groups[who])
	}
	return b, faults
}

// Of is what the owner of a token has been granted: with the token, to it, to the person who signed in by it, and to
// their groups.
func (b *Book) Of(r *pki.APIRecord) (groups []string, a *roles.Access) {
	whos := []roles.Who{{Kind: roles.Token, Name: string(r.ID)}}
	if r.Person != "" {
		whos = append(whos, roles.Who{Kind: roles.Person, Name: r.Person})
	}
	return b.of(r.Granted(), r.Groups, whos)
}

// OfPerson is what a person of these groups has been granted, who need not have signed in.
func (b *Book) OfPerson(name string, named []string) (groups []string, a *roles.Access) {
	var whos []roles.Who
	if name != "" {
		whos = append(whos, roles.Who{Kind: roles.Person, Name: name})
	}
	return b.of(nil, named, whos)
}

func (b *Book) of(own []roles.Grant, named []string, whos []roles.Who) (groups []string, a *roles.Access) {
	all := slices.Clone(own)
	groups = slices.Clone(named)
	if b == nil {
		return groups, roles.NewAccess(all...)
	}
	for _, w := range whos {
		all = append(all, b.grants[w]...)
		groups = append(groups, b.groups[w]...)
	}
	slices.Sort(groups)
	groups = slices.Compact(groups)
	for _, name := range groups {
		all = append(all, b.grants[roles.Who{Kind: roles.Group, Name: name}]...)
	}
	return groups, roles.NewAccess(all...)
}

// Grants are all, by whom they are for.
func (b *Book) Grants() (list []roles.Grant) {
	if b == nil {
		return nil
	}
	for _, g := range b.grants {
		list = append(list, g...)
	}
	slices.SortFunc(list, func(x, y roles.Grant) int {
		if c := x.Who.Compare(y.Who); c != 0 {
			return c
		}
		return x.Made.Compare(y.Made)
	})
	return list
}
