package tunnels

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"heddle/internal/overlay"
	"heddle/internal/plan/problem"
)

// TestS105_AnEndpointsAddressThatAnotherHostHas: it is named with that host, and this host neither sends to itself nor
// takes frames from itself.
func TestS105_AnEndpointsAddressThatAnotherHostHas(t *testing.T) {
	own, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	r := overlay.Reach{Endpoints: []overlay.Endpoint{{Address: own, Host: "esx2"}, {Address: other, Host: "esx3"}},
		Segments: []overlay.Segment{{VNI: 10, Members: []netip.Addr{own, other}}}}
	before := r
	err := ownAbroad([]netip.Addr{own}, &r)
	if err == nil || !strings.Contains(err.Error(), "192.0.2.1 is in use by host esx2") {
		t.Errorf("said: %v", err)
	}
	want := overlay.Reach{Endpoints: []overlay.Endpoint{{Address: other, Host: "esx3"}},
		Segments: []overlay.Segment{{VNI: 10, Members: []netip.Addr{other}}}}
	if !reflect.DeepEqual(r, want) || len(before.Endpoints) != 2 || len(before.Segments[0].Members) != 2 {
		t.Errorf("left %+v of %+v", r, before)
	}
	if err := ownAbroad([]netip.Addr{own}, &r); err != nil {
		t.Errorf("and then: %v", err)
	}
}

// TestS105_OnlyASharedEndpointHasItsCode: what is to be done differs by the code.
func TestS105_OnlyASharedEndpointHasItsCode(t *testing.T) {
	own, six := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::2")
	for _, c := range []struct {
		far  netip.Addr
		want problem.Code
	}{{own, problem.EndpointShared}, {six, problem.NoEndpoint}, {own.Next(), ""}} {
		r := overlay.Reach{Endpoints: []overlay.Endpoint{{Address: c.far, Host: "esx2"}}}
		if why := endsApart("vx-lab", []netip.Addr{own}, &r); why.Code != c.want {
			t.Errorf("%s: %+v", c.far, why)
		}
	}
}
