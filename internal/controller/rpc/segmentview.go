package rpc

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/segments"
	"heddle/internal/overlay/span"
	"heddle/internal/slice"
)

// segmentViewer shows people who is where on overlay segments.
type segmentViewer Front

// ListSegments are the overlay segments of the definition, and others that have members.
func (v segmentViewer) ListSegments(context.Context, *controllerv1.ListSegmentsRequest) (
	*controllerv1.ListSegmentsResponse, error) {
	defined := segmenting{v.fleet}.defined()
	out := &controllerv1.ListSegmentsResponse{}
	for _, s := range v.segments.List() {
		s.Switch, s.PortGroups = defined[span.VNI(s.GetVni())].named()
		delete(defined, span.VNI(s.GetVni()))
		out.Segments = append(out.Segments, s)
	}
	for vni, d := range defined {
		s := &controllerv1.Segment{Vni: uint32(vni)}
		s.Switch, s.PortGroups = d.named()
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
func (v segmentViewer) GetSegment(_ context.Context, q *controllerv1.GetSegmentRequest) (
	*controllerv1.GetSegmentResponse, error) {
	selected, err := selection(q)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err.Error())
	}
	vni := span.VNI(q.GetVni())
	d, known := segmenting{v.fleet}.defined()[vni]
	out := v.segments.Get(vni, selected)
	switch {
	case out == nil && !known:
		return nil, connect.NewError(connect.CodeNotFound, fmt.Sprintf("no port group of the definition has VNI %d: "+
			"list the segments for those there are", vni))
	case out == nil:
		out = &controllerv1.GetSegmentResponse{Segment: &controllerv1.Segment{Vni: uint32(vni)}}
	}
	out.Segment.Switch, out.Segment.PortGroups = d.named()
	return out, nil
}

// selection is what a request selects.
func selection(q *controllerv1.GetSegmentRequest) (s segments.Query, err error) {
	s.Host, s.Limit = q.GetHost(), int(cmp.Or(q.GetLimit(), someLocations))
	if s.Limit > mostLocations {
		return s, fmt.Errorf("at most %d locations are told at once, not %d", mostLocations, s.Limit)
	}
	if q.GetKey() != "" {
		s.Key, err = span.KeyNamed(q.GetKey())
	}
	return s, err
}

// definedSegment is the switch and the port groups of an overlay segment; nil for one that the definition lacks.
type definedSegment []string // SWITCH/GROUP

func (d definedSegment) named() (sw string, groups []string) {
	for _, name := range slices.Sorted(slices.Values(d)) {
		var group string
		sw, group, _ = strings.Cut(name, "/")
		groups = append(groups, group)
	}
	return sw, groups
}

// defined are the overlay segments of the definition.
func (f segmenting) defined() map[span.VNI]definedSegment {
	f.mu.Lock()
	objects := f.inventory.Objects()
	f.mu.Unlock()
	all := map[span.VNI]definedSegment{}
	for o := range objects.All() {
		if o.Kind != slice.PortGroup {
			continue
		}
		if vni := overlayOf(o.Doc); vni != 0 {
			all[vni] = append(all[vni], o.Name)
		}
	}
	return all
}
