package locations

import (
	"net/netip"
	"testing"

	"heddle/internal/overlay/span"
)

// TestALostEndpointBeginsTheConversationAnew: the connection may have had the address that is gone. A further address
// disturbs nothing, and a host that has none left can't speak anyway.
func TestALostEndpointBeginsTheConversationAnew(t *testing.T) {
	lost := 0
	l := &Part{lost: func([]netip.Addr) { lost++ }}
	for _, c := range []struct {
		now  []string
		want int
	}{{[]string{"192.0.2.1"}, 0}, {[]string{"192.0.2.1", "192.0.2.2"}, 0}, {[]string{"192.0.2.2"}, 1},
		{[]string{"192.0.2.2"}, 1}, {[]string{"192.0.2.3"}, 2}, {nil, 2}, {[]string{"192.0.2.3"}, 2}} {
		var list []span.Endpoint
		for _, a := range c.now {
			list = append(list, span.Endpoint{Address: netip.MustParseAddr(a)})
		}
		if l.toldEnds(list); lost != c.want {
			t.Errorf("with %v: lost %d times, want %d", c.now, lost, c.want)
		}
	}
}
