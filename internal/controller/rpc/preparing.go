package rpc

import (
	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/platform/store"
)

// togetherKey is the key of the newest decision that hosts change together.
func togetherKey() store.Key { return store.Key{Kind: "together", Name: "current"} }

// preparing is the part of a fleet that has hosts prepare a change.
type preparing struct{ *fleet }

// add adds to a message what the host is to prepare; m is nil for no message so far. has is what it has been sent.
func (f preparing) add(h *host, c *conn, has *content,
	m *controllerv1.FollowSliceResponse) *controllerv1.FollowSliceResponse {
	change, set := f.together.Prepares(h.id, c.Conn)
	if change == "" {
		return m
	}
	if m == nil {
		m = &controllerv1.FollowSliceResponse{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	m.Prepare = &controllerv1.PrepareChange{Id: change, Update: f.update(has.set, set)}
	return m
}
