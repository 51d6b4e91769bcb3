package api

import (
	"context"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/api/heddle/agent/v1/agentv1connect"
	"heddle/internal/plan"
)

// NeighbourService says who has which IP address in overlay segments.
type NeighbourService interface {
	// Neighbours lists the addresses that the host would answer ARP and neighbour discovery for, and those that are
	// contested (S85).
	Neighbours(context.Context, NeighbourQuery) (*Neighbours, error)
}

// NeighbourOwner is how a host knows who has an address.
type NeighbourOwner string

// The ways in which it does.
const (
	OwnerAtPort     NeighbourOwner = "port"        // heard from a guest of this host
	OwnerAtEndpoint NeighbourOwner = "endpoint"    // heard from another host's endpoint
	OwnerTold       NeighbourOwner = "controllers" // told by the controllers
)

// NeighbourOwners returns all ways, in the order of help texts.
func NeighbourOwners() []NeighbourOwner {
	return []NeighbourOwner{OwnerAtPort, OwnerAtEndpoint, OwnerTold}
}

// How many addresses are listed: unless the query says otherwise, and at most.
const (
	NeighbourLimit = 1000
	MaxNeighbours  = 10000
)

// NeighbourQuery selects addresses: those that match all fields that are set.
type NeighbourQuery struct {
	Switch string `json:"switch,omitempty"`
	VNI    uint32 `json:"vni,omitempty"`
	// Address is an IP address.
	Address string         `json:"address,omitempty"`
	MAC     string         `json:"mac,omitempty"`
	Whose   NeighbourOwner `json:"whose,omitempty"`
	// Contested: only addresses that two MACs claim.
	Contested bool `json:"contested,omitempty"`
	// Limit is how many are listed: 0 for NeighbourLimit, at most MaxNeighbours.
	Limit uint32 `json:"limit,omitempty"`
}

// Neighbours are addresses in overlay segments, and what was counted of ARP and neighbour discovery there.
type Neighbours struct {
	// Neighbours are sorted by switch, segment and address.
	Neighbours []BoundAddress `json:"neighbours"`
	// LeftOff is how many more were selected.
	LeftOff uint32 `json:"leftOff"`
	// Counts are those of each switch that answers.
	Counts []NeighbourCounts `json:"counts"`
}

// BoundAddress is an IP address in an overlay segment, and who has it.
type BoundAddress struct {
	Switch  string         `json:"switch"`
	VLAN    plan.Segment   `json:"vlan"`
	Address string         `json:"address"`
	MAC     string         `json:"mac"`
	Whose   NeighbourOwner `json:"whose"`
	// Port of this host behind which the owner is; Endpoint of another host, if the owner is there. "" where it is not
	// known.
	Port     string `json:"port,omitempty"`
	Endpoint string `json:"endpointAddress,omitempty"`
	// Contested: Rival claims the address too, so that the host answers for neither. Rival had the address before.
	Contested bool   `json:"contested"`
	Rival     string `json:"rivalMac,omitempty"`
	// Unsure: the owner is asked itself, as it has taken the address over and has not answered a question since, or as
	// the owner of an IPv6 address has not said whether it is a Router.
	Unsure bool `json:"unsure,omitempty"`
	Router bool `json:"router,omitempty"`
	// AgeSeconds is how long ago the owner was heard last.
	AgeSeconds float64 `json:"ageSeconds"`
}

// NeighbourCounts are what a switch's tunnel has counted of ARP and neighbour discovery.
type NeighbourCounts struct {
	Switch string `json:"switch"`
	// Answered are the requests that this host answered, Here those that went to its own guests alone, as the owner is
	// one of them.
	Answered uint64 `json:"answered"`
	Here     uint64 `json:"here"`
	// HeldBack are requests beyond what one MAC is answered in a second.
	HeldBack uint64 `json:"heldBack"`
	// Spoofed are packets whose sender names another MAC than its own: nothing was bound.
	Spoofed uint64 `json:"spoofed"`
	// Unbound are new addresses beyond what one MAC may have in a second: the address counts as contested.
	Unbound uint64 `json:"unbound"`
	// Contested are claims to an address of which the owner still speaks.
	Contested uint64 `json:"contested"`
}

// neighbourCalls are those about who has which address.
type neighbourCalls struct {
	client *Client
	rpc    agentv1connect.NeighbourServiceClient
}

// Neighbours lists who has which address in overlay segments.
func (k neighbourCalls) Neighbours(ctx context.Context, q NeighbourQuery) (*Neighbours, error) {
	return ask[*Neighbours](ctx, k.client, k.rpc.ListNeighbours, q)
}

// neighbourAdapter answers the calls about who has which address.
type neighbourAdapter struct{ *adapter }

// ListNeighbours returns the addresses that the host would answer for.
func (a neighbourAdapter) ListNeighbours(ctx context.Context, m *agentv1.ListNeighboursRequest) (
	*agentv1.ListNeighboursResponse, error) {
	return answer[agentv1.ListNeighboursResponse](ctx, a.adapter, m, a.service.Neighbours)
}
