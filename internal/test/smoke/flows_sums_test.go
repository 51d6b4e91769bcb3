package smoke

import (
	"context"
	"fmt"
	"testing"

	"heddle/internal/api"
)

// TestSumsCountWhatTwoPortsMeteredOnce: what a sent b was metered where it entered and where it left; sums of the
// kernel's flows have it once.
func TestSumsCountWhatTwoPortsMeteredOnce(t *testing.T) {
	r := newFlowRig(t)
	r.begin(fmt.Sprintf(flowConfig, r.collector.port, maxFlows, true))
	r.send(1000, 10)
	sums := func(by string) (out api.FlowSums) {
		q := api.FlowSumQuery{By: by, Of: api.SumsOfFlows, Sort: "packets", Limit: 100}
		if err := r.FlowSums(context.Background(), q, func(s api.FlowSums) error { out = s; return nil }); err != nil {
			t.Fatal(err)
		}
		return out
	}
	r.Await("all of it is drained at both ports", func() bool { return r.status().Counted.Packets == 2*r.sent.packets })
	for by, want := range map[string]struct {
		rows int
		name string
	}{
		api.ByAddress: {2, "192.0.2.1"}, api.ByPortGroup: {1, "web"}, api.ByVLAN: {1, "10"}, api.ByProtocol: {1, "udp"},
		api.ByService: {1, "udp/9"}, api.ByConversation: {10, "192.0.2.1:10000 – 198.51.100.2:9"},
	} {
		s := sums(by)
		if s.Total.Packets != r.sent.packets || s.Total.Bytes != r.sent.bytes || s.Total.Flows != 10 ||
			len(s.Rows) != want.rows || s.Rows[0].Name != want.name {
			t.Errorf("by %s: %+v, want %d rows from %s, %v once", by, s, want.rows, want.name, r.sent)
		}
	}
}
