package part

import (
	"context"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// Table is all parts of a controller, each under the hooks that it has. The zero value has none.
type Table struct {
	joiners   []Joiner
	removers  []Remover
	definers  []Definer
	followers []Follower
	hearers   []Hearer
	servants  []Servant
	speakers  []Speaker
}

// Of is the table of these parts. They are called in this order.
func Of(parts ...any) (t Table) {
	for _, p := range parts {
		t.joiners = added(t.joiners, p)
		t.removers = added(t.removers, p)
		t.definers = added(t.definers, p)
		t.followers = added(t.followers, p)
		t.hearers = added(t.hearers, p)
		t.servants = added(t.servants, p)
		t.speakers = added(t.speakers, p)
	}
	return t
}

// added is a list with a part behind the others, if the part has that hook.
func added[Hook any](list []Hook, part any) []Hook {
	if has, is := part.(Hook); is {
		return append(list, has)
	}
	return list
}

// Joined calls all joiners.
func (t Table) Joined(id, name string) {
	for _, p := range t.joiners {
		p.Joined(id, name)
	}
}

// Remove calls all removers.
func (t Table) Remove(id string) {
	for _, p := range t.removers {
		p.Remove(id)
	}
}

// DefinitionChanged calls all definers.
func (t Table) DefinitionChanged() {
	for _, p := range t.definers {
		p.DefinitionChanged()
	}
}

// Connected calls all followers.
func (t Table) Connected(id string, c *Conn, first *controllerv1.FollowSliceRequest) {
	for _, p := range t.followers {
		p.Connected(id, c, first)
	}
}

// Disconnected calls all followers.
func (t Table) Disconnected(id string, c *Conn) {
	for _, p := range t.followers {
		p.Disconnected(id, c)
	}
}

// Hear calls all hearers.
func (t Table) Hear(id string, c *Conn, m *controllerv1.FollowSliceRequest) {
	for _, p := range t.hearers {
		p.Hear(id, c, m)
	}
}

// Serve calls all servants.
func (t Table) Serve(ctx context.Context, id string, c *Conn, m *controllerv1.FollowSliceRequest) {
	for _, p := range t.servants {
		p.Serve(ctx, id, c, m)
	}
}

// Objects is a message with what all speakers add; m is nil for no message so far, as is the result.
func (t Table) Objects(id string, c *Conn, m *controllerv1.FollowSliceResponse) *controllerv1.FollowSliceResponse {
	made := func() *controllerv1.FollowSliceResponse {
		if m == nil {
			m = &controllerv1.FollowSliceResponse{}
		}
		return m
	}
	for _, p := range t.speakers {
		p.Objects(id, c, made)
	}
	return m
}
