package agent

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"heddle/internal/host/hostdev"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

// pathMTU is how long packets to the endpoints of other hosts may be, as this host's kernel knows it from its routes
// and from what routers on the way have said. The kernel reports no change of that: it is asked from time to time,
// beside the loop.
type pathMTU struct {
	*shared
	settler *settler
	ask     func([]hostdev.Way) (map[netip.Addr]int, error)

	known map[netip.Addr]int
	busy  bool
	read  time.Time     // when the kernel was last asked
	took  time.Duration // for so long
}

const (
	// pathEvery is how often the kernel is asked.
	pathEvery = 2 * time.Second
	// pathShare bounds the time that questions take: a part of it in so many.
	pathShare = 500
)

// tick asks the kernel if it is time to.
func (p *pathMTU) tick() {
	if p.busy || time.Since(p.read) < max(pathEvery, p.took*pathShare) {
		return
	}
	ways := p.ways()
	if len(ways) == 0 {
		p.known = nil
		return
	}
	p.busy = true
	go func() {
		begun := time.Now()
		known, err := p.ask(ways)
		took := time.Since(begun)
		p.Post(func() {
			p.busy, p.read, p.took = false, time.Now(), took
			p.take(known, err)
		})
	}()
}

// take has the tunnels use what the kernel said.
func (p *pathMTU) take(known map[netip.Addr]int, err error) {
	if err != nil {
		p.Complain("find out how long packets to other hosts may be", err)
		return
	}
	if !maps.Equal(p.known, known) {
		p.known = known
		p.settler.settle()
	}
}

// ways are those to all endpoints that the tunnels know.
func (p *pathMTU) ways() (list []hostdev.Way) {
	d := p.Active().Applied
	if d == nil {
		return nil
	}
	for _, sw := range d.Plan.Switches {
		if sw.Tunnel == nil {
			continue
		}
		own := d.Facts[sw.Tunnel.ID].Endpoints
		for _, e := range d.Reach[sw.Name].Endpoints {
			from := slices.IndexFunc(own, func(a netip.Addr) bool { return a.Is4() == e.Address.Is4() })
			if from >= 0 {
				list = append(list, hostdev.Way{Own: own[from], Far: e.Address})
			}
		}
	}
	return list
}

// narrow adds to what is known of other hosts' endpoints how long packets to them may be. It returns the state of the
// tunnel if guests' packets do not fit a path, though they fit this host's device.
func (p *pathMTU) narrow(sw *plan.Switch, own plan.Fact, r *overlay.Reach) (low problem.Problem) {
	r.Endpoints = slices.Clone(r.Endpoints)
	for i := range r.Endpoints {
		e := &r.Endpoints[i]
		e.Narrow(p.known[e.Address])
		want := sw.MTU + headroom(sw, e.Address)
		if e.MTU == 0 || own.MTU < want || want-e.MTU <= low.Want-low.Have {
			continue
		}
		low = problem.Problem{Code: problem.LowMTU, Kind: problem.PathKind, Device: e.Host, Other: e.Address.String(),
			Have: e.MTU, Want: want, Peer: sw.Name}
	}
	return low
}
