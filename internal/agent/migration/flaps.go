package migration

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/observe/event"
	"heddle/internal/observe/flapping"
	"heddle/internal/plan"
)

// flapEvery is how often controllers are told at most which MACs are learned again and again.
const flapEvery = 10 * time.Second

// flaps owns what the host knows of MACs that go to and fro between hosts. It is for the loop.
type flaps struct {
	log    *slog.Logger
	events *event.Bus
	ledger flapping.Ledger
	again  []flapping.MAC // as the controllers are told
	listed time.Time      // when that was made
	// told are those of which a controller says that others have them, too, by the port.
	told map[plan.PortID][]api.FlappingMAC
}

// learned takes in what the switch program reports of MACs.
func (f *flaps) learned(e dataplane.Told) {
	if e.Kind != abi.TellLearned {
		return
	}
	f.ledger.Learned(flapping.Key{Switch: e.Port.Switch, Segment: plan.SegmentOf(e.VLAN, e.AD).In(e.VNI),
		MAC: e.MAC.String()}, e.Port.Name, e.At)
}

// list are the MACs that controllers are told of. It is another one every flapEvery at most.
func (f *flaps) list(now time.Time) (out []*controllerv1.LearnedAgain) {
	if now.Sub(f.listed) >= flapEvery {
		f.again, f.listed = f.ledger.Again(now), now
		f.end()
	}
	for _, m := range f.again {
		out = append(out, &controllerv1.LearnedAgain{Switch: m.Switch, Segment: m.Segment.String(), Mac: m.MAC,
			Port: m.Port, Times: int64(m.Times)})
	}
	return out
}

// flapKey is a MAC in a segment of a switch.
type flapKey struct{ sw, segment, mac string }

func flapKeyOf(id plan.PortID, m api.FlappingMAC) flapKey {
	return flapKey{id.Switch, m.Segment, m.MAC}
}

// Flapping takes in which MACs of this host others learn again and again, too.
func (mv *Part) Flapping(ctx context.Context, m *controllerv1.HostFlapping) error {
	return mv.host.Loop.Do(ctx, func() error { mv.flaps.take(m.GetMacs()); return nil })
}

// of are the MACs of which a controller says that others have them, too.
func (f *flaps) of(id plan.PortID) []api.FlappingMAC { return f.told[id] }

// take takes in all that a controller says.
func (f *flaps) take(list []*controllerv1.FlappingMac) {
	next := map[plan.PortID][]api.FlappingMAC{}
	for _, m := range list {
		here := m.GetHere()
		one := api.FlappingMAC{MAC: here.GetMac(), Segment: here.GetSegment(), Times: int(here.GetTimes())}
		for _, e := range m.GetElsewhere() {
			one.Elsewhere = append(one.Elsewhere, api.FlappingElsewhere{Host: e.GetHost(), Port: e.GetPort(),
				Times: int(e.GetTimes())})
		}
		id := plan.PortID{Switch: here.GetSwitch(), Name: here.GetPort()}
		next[id] = append(next[id], one)
	}
	f.put(next)
}

// put replaces what was told, and says by events what is new and what is over.
func (f *flaps) put(next map[plan.PortID][]api.FlappingMAC) {
	was, is := flapKeys(f.told), flapKeys(next)
	for id, list := range next {
		for _, m := range list {
			if !was[flapKeyOf(id, m)] {
				f.publish(id, m, m.String())
			}
		}
	}
	for id, list := range f.told {
		for _, m := range list {
			if !is[flapKeyOf(id, m)] {
				f.publish(id, m, fmt.Sprintf("%s (VLAN %s) no longer goes to and fro between hosts", m.MAC, m.Segment))
			}
		}
	}
	f.told = next
}

func flapKeys(of map[plan.PortID][]api.FlappingMAC) map[flapKey]bool {
	all := map[flapKey]bool{}
	for id, list := range of {
		for _, m := range list {
			all[flapKeyOf(id, m)] = true
		}
	}
	return all
}

// end ends what is no longer so by this host's own list, whether a controller says so or not.
func (f *flaps) end() {
	left := map[flapKey]bool{}
	for _, m := range f.again {
		left[flapKey{m.Switch, m.Segment.String(), m.MAC}] = true
	}
	next := map[plan.PortID][]api.FlappingMAC{}
	for id, list := range f.told {
		for _, m := range list {
			if left[flapKeyOf(id, m)] {
				next[id] = append(next[id], m)
			}
		}
	}
	f.put(next)
}

func (f *flaps) publish(id plan.PortID, m api.FlappingMAC, text string) {
	f.log.Warn(text, "port", id.String())
	f.events.Publish(event.Event{Kind: event.Flapping, Switch: id.Switch, Port: id.Name, MAC: m.MAC, Text: text})
}
