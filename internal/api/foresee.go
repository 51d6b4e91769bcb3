package api

import (
	"context"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/internal/diagnose"
)

// Foresee is another version of the host's slice of the controllers' definition, as a change of the active one.
type Foresee struct {
	// Base and Next are the hashes of the slice before and after the change.
	Base []byte `json:"base"`
	Next []byte `json:"next"`
	// Put are the objects that are new or different, Removed those that go, without content.
	Put     []ForeseeObject `json:"put"`
	Removed []ForeseeObject `json:"removed"`
}

// ForeseeObject is an object of a slice.
type ForeseeObject struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	Doc  string `json:"doc,omitempty"` // JSON
}

// Foresee returns what a change of the slice would newly lose of what ports sent lately.
func (a *adapter) Foresee(ctx context.Context, m *agentv1.ForeseeRequest) (*agentv1.ForeseeResponse, error) {
	return answer[agentv1.ForeseeResponse](ctx, a, m, a.service.Foresee)
}

// Foresee returns what a change of the slice would newly lose of what ports sent lately.
func (c *Client) Foresee(ctx context.Context, q Foresee) (*diagnose.Foreseen, error) {
	return ask[*diagnose.Foreseen](ctx, c, c.change.Foresee, q)
}
