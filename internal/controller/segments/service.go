package segments

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/overlay/span"
)

// Service shows people who is where on overlay segments.
type Service struct {
	Hub *Hub
	// Defined are the port groups of the definition that have an overlay segment, as SWITCH/GROUP.
	Defined func() map[span.VNI][]string
}

// ListSegments are the overlay segments of the definition, and others that have members.
func (v Service) ListSegments(context.Context, *controllerv1.ListSegmentsRequest) (
	*controllerv1.ListSegmentsResponse, error) {
	defined := v.Defined()
	out := &controllerv1.ListSegmentsResponse{}
	for _, s := range v.Hub.List() {
		s.Switch, s.PortGroups = named(defined[span.VNI(s.GetVni())])
		delete(defined, span.VNI(s.GetVni()))
		out.Segments = append(out.Segments, s)
	}
	for vni, d := range defined {
		s := &controllerv1.Segment{Vni: uint32(vni)}
		s.Switch, s.PortGroups = named(d)
		out.Segments = append(out.Segments, s)
	}
	slices.SortFunc(out.Segments, func(a, b *controllerv1.Segment) int { return int(a.GetVni()) - int(b.GetVni()) })
	return out, nil
}

// How many locations an answer has.
const (
	someLocations = 1000
	mostLocations = 10_000
)

// GetSegment is one segment with who is where.
func (v Service) GetSegment(_ context.Context, q *controllerv1.GetSegmentRequest) (
	*controllerv1.GetSegmentResponse, error) {
	selected, err := selection(q)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err.Error())
	}
	vni := span.VNI(q.GetVni())
	d, known := v.Defined()[vni]
	out := v.Hub.Get(vni, selected)
	switch {
	case out == nil && !known:
		return nil, connect.NewError(connect.CodeNotFound, fmt.Sprintf("no port group of the definition has VNI %d: "+
			"list the segments for those there are", vni))
	case out == nil:
		out = &controllerv1.GetSegmentResponse{Segment: &controllerv1.Segment{Vni: uint32(vni)}}
	}
	out.Segment.Switch, out.Segment.PortGroups = named(d)
	return out, nil
}

// selection is what a request selects.
func selection(q *controllerv1.GetSegmentRequest) (s Query, err error) {
	s.Host, s.Limit = q.GetHost(), int(cmp.Or(q.GetLimit(), someLocations))
	if s.Limit > mostLocations {
		return s, fmt.Errorf("at most %d locations are told at once, not %d", mostLocations, s.Limit)
	}
	if q.GetKey() != "" {
		s.Key, err = span.KeyNamed(q.GetKey())
	}
	return s, err
}

// named is the switch and the port groups of an overlay segment, by the names SWITCH/GROUP; none for one that the
// definition lacks.
func named(of []string) (sw string, groups []string) {
	for _, name := range slices.Sorted(slices.Values(of)) {
		var group string
		sw, group, _ = strings.Cut(name, "/")
		groups = append(groups, group)
	}
	return sw, groups
}
