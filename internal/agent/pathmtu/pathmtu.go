package pathmtu

import (
	"net/netip"
	"slices"
	"time"

	"heddle/internal/agent/active"
	"heddle/internal/host/hostdev"
)

// Host is what the part needs of its host.
type Host struct {
	active.Reader
	// Ask has the reconcile follow what the part wants by now.
	Ask func()
	// Post runs a function in the loop; false if that has ended.
	Post     func(func()) bool
	Complain func(what string, err error)
	// Read asks the kernel.
	Read func([]hostdev.Way) (map[netip.Addr]int, error)
}

// Lengths is how long packets to the endpoints of other hosts may be, as this host's kernel knows it from its routes
// and from what routers on the way have said. The kernel reports no change of that: it is asked from time to time,
// beside the loop.
type Lengths struct {
	host  Host
	known map[netip.Addr]int
	busy  bool
	read  time.Time     // when the kernel was last asked
	took  time.Duration // for so long
}

// New returns a part that knows nothing yet.
func New(h Host) *Lengths { return &Lengths{host: h} }

// Want returns what is known.
func (p *Lengths) Want(*active.Value) active.Want { return active.Want{Lengths: p.known} }

// Close does nothing: a question that is still asked answers to nobody.
func (p *Lengths) Close() error { return nil }

const (
	// every is how often the kernel is asked.
	every = 2 * time.Second
	// share bounds the time that questions take: a part of it in so many.
	share = 500
)

// Tick asks the kernel if it is time to.
func (p *Lengths) Tick() {
	if p.busy || time.Since(p.read) < max(every, p.took*share) {
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
		known, err := p.host.Read(ways)
		took := time.Since(begun)
		p.host.Post(func() {
			p.busy, p.read, p.took = false, time.Now(), took
			p.take(known, err)
		})
	}()
}

// take has the tunnels use what the kernel said.
func (p *Lengths) take(known map[netip.Addr]int, err error) {
	if err != nil {
		p.host.Complain("find out how long packets to other hosts may be", err)
		return
	}
	p.known = known
	p.host.Ask()
}

// ways are those to all endpoints that the tunnels know.
func (p *Lengths) ways() (list []hostdev.Way) {
	d := p.host.Active().Applied
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
