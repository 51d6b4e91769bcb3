package uplinks

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/uplinks/lacp"
	"heddle/internal/uplinks/linkproto"
	"heddle/internal/uplinks/lldp"
)

// told returns the events of a kind.
func told(t *testing.T, bus *event.Bus, k event.Kind) (list []event.Event) {
	if bus.Last() == 0 {
		return nil
	}
	all, _, err := bus.After(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if e.Kind == k {
			list = append(list, e)
		}
	}
	return list
}

func TestAPeerThatChangesWithEveryFrameIsNotToldOfForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const burst, every = 60, 10 * time.Second
		h := Host{Log: slog.New(slog.DiscardHandler), Events: event.NewBus(4096),
			Limit: event.Limiter[plan.PortID]{Burst: burst, Every: every}}
		lags := NewLAGs(h)
		neighbours := &LLDP{host: h, limit: h.Limit, untold: map[plan.PortID]int{}}
		report := linkproto.LACPReport{ID: plan.PortID{Switch: "lab", Name: "bundle"}}
		for i := range 1000 {
			m := lacp.MemberStatus{Name: "u1"}
			m.Partner.System.MAC = plan.MAC{2, 0, 0, 0, byte(i >> 8), byte(i)}
			report.Status.Members = []lacp.MemberStatus{m}
			lags.publish(report)
			n := lldp.Neighbour{PDU: lldp.PDU{SystemName: fmt.Sprint("n", i)}}
			neighbours.reported([]linkproto.LLDPReport{{ID: plan.PortID{Switch: "lab", Name: "u2"},
				Change: lldp.Updated, Neighbour: n}})
		}
		lags.reports[report.ID] = report
		if got := len(told(t, h.Events, event.Neighbour)); got != 2*burst {
			t.Errorf("%d events of two peers that each changed 1000 times, want %d", got, 2*burst)
		}
		time.Sleep(every)
		lags.TellHeld()
		list := told(t, h.Events, event.Neighbour)
		if got := list[len(list)-1]; len(list) != 2*burst+1 || got.To != "0,02:00:00:00:03:e7 key 0" {
			t.Errorf("%d events, the last %+v; want the partner there is", len(list), got)
		}
		neighbours.reported([]linkproto.LLDPReport{{ID: plan.PortID{Switch: "lab", Name: "u2"}, Change: lldp.Gone}})
		list = told(t, h.Events, event.Neighbour)
		if got, want := list[len(list)-1].Text, fmt.Sprintf("(%d changes before it were too many to report)",
			1000-burst); len(got) < len(want) || got[len(got)-len(want):] != want {
			t.Errorf("told %q, want at its end %q", got, want)
		}
	})
}
