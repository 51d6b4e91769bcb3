package api

import (
	"context"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
)

// Segment is an overlay segment, as the controllers know it.
type Segment struct {
	VNI        uint32   `json:"vni"`
	Switch     string   `json:"switch"`
	PortGroups []string `json:"portGroups"`
	// Hosts that have ports in it.
	Hosts uint32 `json:"hosts"`
	// MACs and Addresses that are located in it.
	MACs      uint32 `json:"macs"`
	Addresses uint32 `json:"addresses"`
	// Contested is how many of them several hosts claim.
	Contested uint32 `json:"contested"`
}

// SegmentDetail is an overlay segment with who is where.
type SegmentDetail struct {
	Segment   Segment           `json:"segment"`
	Members   []SegmentMember   `json:"members"`
	Locations []SegmentLocation `json:"locations"`
	// LeftOff is how many more locations were selected.
	LeftOff uint32 `json:"leftOff"`
}

// SegmentMember is a host that has ports in a segment.
type SegmentMember struct {
	Host string `json:"host"`
	// At are its endpoints.
	At []SegmentEndpoint `json:"at"`
	// Connected: a controller hears from it. What is known of one that is not is what it said last.
	Connected bool   `json:"connected"`
	MACs      uint32 `json:"macs"`
}

// SegmentEndpoint is an outer address of a host.
type SegmentEndpoint struct {
	Address string `json:"address"`
	// MTU of the underlay there, in bytes.
	MTU uint32 `json:"mtu"`
	// Down: it takes no frames at present.
	Down bool `json:"down"`
}

// SegmentSource is how a host knows where a MAC or an address is.
type SegmentSource string

// Sources.
const (
	SegmentLearned SegmentSource = "learned" // from frames that a port sent
	SegmentPort    SegmentSource = "port"    // it is the port's own MAC
)

// SegmentLocation is where a MAC or an IP address is.
type SegmentLocation struct {
	// Key is the MAC or the address.
	Key  string `json:"key"`
	Host string `json:"host"`
	// Endpoint takes its frames; "" where the host has none that is up.
	Endpoint string        `json:"endpoint"`
	Source   SegmentSource `json:"source"`
	// VLAN is that inside the VNI, 0 for the untagged one; nil for a MAC that is in no VLAN in particular: the own one
	// of a trunk port, or one at a host that does not know VLANs inside a VNI.
	VLAN *uint16 `json:"vlan,omitempty"`
	// Owner is the MAC that an address belongs to; "" for a MAC.
	Owner string `json:"owner,omitempty"`
	// Generation of the port, which rises on whatever host the guest begins to run (S100); 0 for what is learned.
	Generation uint64    `json:"generation"`
	Since      time.Time `json:"since,omitzero"`
	// Contested are other hosts that claim it.
	Contested []string `json:"contested"`
}

// SegmentQuery selects what is told of a segment.
type SegmentQuery struct {
	VNI uint32 `json:"vni"`
	// Key is one MAC or IP address, Host the name of one host; "" for all.
	Key  string `json:"key"`
	Host string `json:"host"`
	// Limit is how many locations are told: 0 for 1,000, at most 10,000.
	Limit uint32 `json:"limit"`
}

// segmentCalls are those about overlay segments.
type segmentCalls struct {
	fleet *Fleet
	rpc   controllerv1connect.SegmentServiceClient
}

// Segments lists the overlay segments of the definition, and others that hosts have ports in.
func (s segmentCalls) Segments(ctx context.Context) ([]Segment, error) {
	out, err := call[struct {
		Segments []Segment `json:"segments"`
	}, controllerv1.ListSegmentsRequest, controllerv1.ListSegmentsResponse](ctx, s.fleet, s.rpc.ListSegments, nil)
	return out.Segments, err
}

// Segment says who is where in one.
func (s segmentCalls) Segment(ctx context.Context, q SegmentQuery) (*SegmentDetail, error) {
	out, err := call[SegmentDetail, controllerv1.GetSegmentRequest, controllerv1.GetSegmentResponse](ctx, s.fleet,
		s.rpc.GetSegment, q)
	return &out, err
}
