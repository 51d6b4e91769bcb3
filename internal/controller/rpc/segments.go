package rpc

import (
	"bytes"
	"context"
	"encoding/json"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/controller/segments"
	"heddle/internal/overlay/span"
	"heddle/internal/slice"
)

// overlayOf is what a port group's document says of its overlay segment.
func overlayOf(doc []byte) (vni span.VNI) {
	if !bytes.Contains(doc, []byte(`"overlay"`)) {
		return 0 // the most, which are not read
	}
	var g struct {
		Overlay struct {
			VNI span.VNI `json:"vni"`
		} `json:"overlay"`
	}
	if json.Unmarshal(doc, &g) != nil || !g.Overlay.VNI.Valid() {
		return 0
	}
	return g.Overlay.VNI
}

// given are the overlay segments that the definition gives a host.
type given struct {
	set *slice.Set
	all map[span.VNI]bool
}

// segmenting is the part of a fleet that knows which overlay segments the definition gives hosts.
type segmenting struct{ *fleet }

// allowed are those of a host; nil for one that is not of the cluster.
func (f segmenting) allowed(id string) map[span.VNI]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.hosts[id]
	if h == nil {
		return nil
	}
	set, err := f.target(h)
	if err != nil {
		return map[span.VNI]bool{}
	}
	if h.given.set != set {
		h.given = given{set, vnisOf(set)}
	}
	return h.given.all
}

// vnisOf are the overlay segments of the port groups in a content.
func vnisOf(set *slice.Set) map[span.VNI]bool {
	all := map[span.VNI]bool{}
	for o := range set.All() {
		if o.Kind == slice.PortGroup {
			if vni := overlayOf(o.Doc); vni != 0 {
				all[vni] = true
			}
		}
	}
	return all
}

// spanning is a server's part in overlay segments: hosts follow who is where, and other controllers are followed.
type spanning struct{ *Server }

// FollowSegments hands a host who is where in its overlay segments.
func (s spanning) FollowSegments(ctx context.Context,
	stream controllerv1connect.HostServiceFollowSegmentsServerStream) error {
	return besideSlice(ctx, s, stream, s.quorum.refuse, func(ctx context.Context, id, name string,
		first *controllerv1.FollowSegmentsRequest) error {
		return s.segments.Follow(ctx, segments.Host{ID: id, Name: name}, first, stream)
	})
}

// nameOf is a host's name; "" for one that is not of the cluster.
func (f segmenting) nameOf(id string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := f.hosts[id]; h != nil {
		return h.doc.Name
	}
	return ""
}

// FollowSegmentsHere hands another controller what hosts of this one say of overlay segments.
func (o others) FollowSegmentsHere(ctx context.Context, _ *controllerv1.FollowSegmentsHereRequest,
	stream controllerv1connect.ControllerServiceFollowSegmentsHereServerStream) error {
	if _, err := controllerOf(ctx); err != nil {
		return err
	}
	if err := o.segments.Share(ctx, stream.Send); err != nil && ctx.Err() == nil {
		return connect.NewError(connect.CodeUnavailable, err.Error())
	}
	return nil
}

// defined are the overlay segments of the definition.
func (f segmenting) defined() map[span.VNI][]string {
	f.mu.Lock()
	objects := f.inventory.Objects()
	f.mu.Unlock()
	all := map[span.VNI][]string{}
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
