package locations

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"heddle/internal/abi"
	"heddle/internal/agent/metrics"
	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/dataplane/compile"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// Queries answers queries for who has which address in overlay segments. The loop gives the state it has; the kernel's
// tables, which may be long, are read outside the loop.
type Queries struct{ part *Part }

// NewQueries returns what answers the queries about a part.
func NewQueries(p *Part) Queries { return Queries{p} }

// behind says at which port of this host each MAC of an overlay segment is.
type behind map[string]map[overlay.Key]plan.PortID

// at is the port with a MAC; the zero PortID where there is none.
func (b behind) at(sw string, key overlay.Key) plan.PortID {
	if id, is := b[sw][key]; is {
		return id
	}
	return b[sw][key.Whole()] // a trunk port's own
}

// Neighbours lists who has which address, and what was counted of ARP and ND.
func (c Queries) Neighbours(ctx context.Context, q api.NeighbourQuery) (*api.Neighbours, error) {
	keep, err := wanted(q)
	if err != nil {
		return nil, err
	}
	var reader *dataplane.NeighbourReader
	var at behind
	if err := c.part.host.Loop.Do(ctx, func() error {
		if reader, err = c.part.host.Kernel().Neighbours(); err != nil {
			return err
		}
		if learned, _, ok := c.part.learned(); ok && c.part.host.Active().Applied != nil {
			at = c.part.behind(learned)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	list, err := reader.List(keep)
	if err != nil {
		return nil, err
	}
	limit := int(q.Limit)
	if limit == 0 {
		limit = api.NeighbourLimit
	}
	shown := list[:min(limit, len(list))]
	out := &api.Neighbours{Neighbours: make([]api.BoundAddress, 0, len(shown)), LeftOff: uint32(len(list) - len(shown)),
		Counts: []api.NeighbourCounts{}}
	for i := range shown {
		one, err := boundAddress(&shown[i], reader, at)
		if err != nil {
			return nil, err
		}
		out.Neighbours = append(out.Neighbours, one)
	}
	counted, err := c.SampleNeighbours(ctx)
	for i := range counted {
		if q.Switch == "" || q.Switch == counted[i].Counts.Switch {
			out.Counts = append(out.Counts, counted[i].Counts)
		}
	}
	return out, err
}

// wanted is what a query selects.
func wanted(q api.NeighbourQuery) (func(*overlay.Bound) bool, error) {
	var ip netip.Addr
	var mac plan.MAC
	var err error
	switch {
	case q.Limit > api.MaxNeighbours:
		err = fmt.Errorf("limit %d: it is at most %d", q.Limit, api.MaxNeighbours)
	case q.Whose != "" && !slices.Contains(api.NeighbourOwners(), q.Whose):
		err = fmt.Errorf("whose %q: it is port, endpoint or controllers", q.Whose)
	}
	if err == nil && q.Address != "" {
		ip, err = netip.ParseAddr(q.Address)
	}
	if err == nil && q.MAC != "" {
		mac, err = plan.ParseMAC(q.MAC)
	}
	if err != nil {
		return nil, api.NewError(api.Invalid, err.Error())
	}
	return func(b *overlay.Bound) bool {
		return (q.Switch == "" || b.Switch == q.Switch) && (q.VNI == 0 || b.VNI == q.VNI) &&
			(q.Address == "" || b.IP == ip.Unmap()) && (q.MAC == "" || b.MAC == mac || b.Contested && b.Rival == mac) &&
			(q.Whose == "" || whose(b) == q.Whose) && (!q.Contested || b.Contested)
	}, nil
}

// whose is how it is known who has an address.
func whose(b *overlay.Bound) api.NeighbourOwner {
	switch {
	case b.Told:
		return api.OwnerTold
	case b.Here:
		return api.OwnerAtPort
	}
	return api.OwnerAtEndpoint
}

// boundAddress is an address as it is shown.
func boundAddress(b *overlay.Bound, reader *dataplane.NeighbourReader, at behind) (api.BoundAddress, error) {
	out := api.BoundAddress{Switch: b.Switch, VLAN: plan.SegmentOf(b.VLAN, false).In(b.VNI), Address: b.IP.String(),
		MAC: b.MAC.String(), Whose: whose(b), Contested: b.Contested,
		Unsure: b.Unverified || b.IP.Is6() && !b.Advertised,
		Router: b.Router, AgeSeconds: b.Age.Seconds()}
	if b.Rival != (plan.MAC{}) {
		out.Rival = b.Rival.String()
	}
	if b.Here && !b.Told {
		out.Port = at.at(b.Switch, learnedAt(b.VNI, b.VLAN, b.MAC)).Name
		return out, nil
	}
	endpoint, err := reader.Endpoint(compile.OverlaySegment{Switch: b.Switch, VNI: b.VNI, VLAN: b.VLAN}, b.MAC)
	if err != nil {
		return out, err
	}
	if endpoint.IsValid() {
		out.Endpoint = endpoint.String()
	}
	return out, nil
}

// SampleNeighbours implements metrics.Source.
func (c Queries) SampleNeighbours(ctx context.Context) ([]metrics.Neighbours, error) {
	var reader *dataplane.NeighbourReader
	var counters *dataplane.CounterReader
	var all []metrics.Neighbours
	err := c.part.host.Loop.Do(ctx, func() (err error) {
		if c.part.host.Active().Applied == nil {
			return nil
		}
		contested := map[string]int{}
		for at := range c.part.addressing.contested {
			contested[at.sw]++
		}
		for _, sw := range c.part.host.Active().Applied.Plan.Switches {
			if sw.Tunnel != nil && sw.Tunnel.Hold > 0 {
				all = append(all, metrics.Neighbours{Counts: api.NeighbourCounts{Switch: sw.Name},
					Contested: contested[sw.Name]})
			}
		}
		counters = c.part.host.Kernel().CounterReader()
		reader, err = c.part.host.Kernel().Neighbours()
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range all {
		counts := &all[i].Counts
		n, err := reader.Counts(counts.Switch)
		if err != nil {
			return nil, err
		}
		counts.Spoofed, counts.Unbound, counts.Contested = n.Spoofed, n.Unbound, n.Contested
		tunnel := plan.PortID{Switch: counts.Switch, Name: spec.TunnelName}
		if !counters.Has(tunnel) {
			continue
		}
		at, err := counters.Read(tunnel)
		if err != nil {
			return nil, err
		}
		counts.Answered, counts.Here = at.Refused[abi.ReasonNeighbourAnswered], at.Refused[abi.ReasonNeighbourHere]
		counts.HeldBack = at.Refused[abi.ReasonNeighbourLimit]
	}
	return all, nil
}
