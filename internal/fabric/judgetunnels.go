package fabric

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Unreachable means that packets of the tunnel do not pass to an endpoint, or between two.
const Unreachable Code = "tunnel-unreachable"

// DoesNotKnow means that nothing is known of an endpoint, since the agent of its host answers no probes of tunnels.
const DoesNotKnow Code = "does-not-know"

// Codes are all codes of findings.
func Codes() []Code {
	return []Code{VLANMissing, NothingPasses, CablesSwapped, MTULow, NoBundle, Bundle, WayOneWay, Unreachable,
		Lossy, Slow, Apart, DoesNotKnow}
}

// Bounds of what is said of tunnels.
const (
	// slowTimes and slowMore say when a tunnel is slow: so many times its usual delay, and so much more.
	slowTimes = 5
	slowMore  = 20 * time.Millisecond
	// mostTunnelFindings is how many findings of one kind each switch has: the rest is counted.
	mostTunnelFindings = 16
)

// Tunnels says what is wrong with the tunnels of hosts by what their probes found. What many pairs of endpoints share
// is one finding.
func Tunnels(list []Tunnel) []Finding {
	by := map[string][]Tunnel{}
	for _, t := range list {
		by[t.Switch] = append(by[t.Switch], t)
	}
	var out []Finding
	for _, sw := range slices.Sorted(maps.Keys(by)) {
		out = append(out, newTunnels(sw, by[sw]).judge()...)
	}
	return out
}

// couple is two endpoints; between them, the smaller address is the first.
type couple struct{ a, b netip.Addr }

func coupleOf(t *Tunnel) couple {
	if t.Own.Less(t.Peer) {
		return couple{t.Own, t.Peer}
	}
	return couple{t.Peer, t.Own}
}

// tunnels gathers what is found on one switch.
type tunnels struct {
	sw      string
	name    map[netip.Addr]string // HOST (ADDRESS)
	host    map[netip.Addr]string // ids
	mtu     int
	port    int
	passing map[couple]bool
	lost    map[couple]*Tunnel
	mute    map[netip.Addr]bool
	away    map[netip.Addr]bool
	deaf    map[couple]netip.Addr // the end that does not hear
	low     map[int]map[couple]*Tunnel
	lossy   map[couple]*Tunnel
	slow    map[couple]*Tunnel
}

func newTunnels(sw string, list []Tunnel) *tunnels {
	g := &tunnels{sw: sw, name: map[netip.Addr]string{}, host: map[netip.Addr]string{}, passing: map[couple]bool{},
		lost: map[couple]*Tunnel{}, mute: map[netip.Addr]bool{}, away: map[netip.Addr]bool{},
		deaf:  map[couple]netip.Addr{},
		low:   map[int]map[couple]*Tunnel{},
		lossy: map[couple]*Tunnel{}, slow: map[couple]*Tunnel{}}
	for i := range list {
		t := &list[i]
		g.name[t.Own], g.host[t.Own] = endName(t.Name, t.Own), t.Host
		if g.name[t.Peer] == "" {
			g.name[t.Peer] = endName(t.PeerName, t.Peer)
		}
		g.mtu, g.port = max(g.mtu, t.MTU), cmp.Or(t.Port, g.port)
		g.take(t)
	}
	return g
}

func endName(host string, a netip.Addr) string {
	if host == "" {
		return a.String()
	}
	return fmt.Sprintf("%s (%s)", host, a)
}

// take sorts in what one host found.
func (g *tunnels) take(t *Tunnel) {
	k := coupleOf(t)
	if t.Away {
		g.away[t.Peer] = true
	}
	if t.Deaf {
		g.deaf[k] = t.Peer
	}
	switch {
	case t.State == Passes:
		g.passing[k] = true
	case t.State == Unknown:
	case t.Mute:
		g.mute[t.Peer] = true
	default:
		g.lost[k] = t
	}
	if t.State != Passes {
		return
	}
	if t.Full == Lost && t.Fits > 0 {
		if g.low[t.Fits] == nil {
			g.low[t.Fits] = map[couple]*Tunnel{}
		}
		g.low[t.Fits][k] = t
	}
	switch {
	case t.Loss >= lossyPercent:
		if w := g.lossy[k]; w == nil || w.Loss < t.Loss {
			g.lossy[k] = t
		}
	case t.Usual > 0 && t.Delay >= t.Usual*slowTimes && t.Delay >= t.Usual+slowMore:
		if w := g.slow[k]; w == nil || w.Delay < t.Delay {
			g.slow[k] = t
		}
	}
}

func (g *tunnels) judge() (out []Finding) {
	for k := range g.passing {
		delete(g.lost, k) // one of the two has not probed again yet
		delete(g.deaf, k)
	}
	out = append(out, g.oneWay()...)
	out = append(out, g.unreachable()...)
	for _, fits := range slices.Sorted(maps.Keys(g.low)) {
		out = append(out, g.spots(g.low[fits], g.short(fits))...)
	}
	out = append(out, g.unknown()...)
	out = append(out, g.spots(g.lossy, g.loses)...)
	out = append(out, g.spots(g.slow, g.lags)...)
	for i := range out {
		slices.Sort(out[i].Hosts)
		out[i].Hosts = slices.DeleteFunc(slices.Compact(out[i].Hosts), func(id string) bool { return id == "" })
	}
	return out
}

// unknown names the endpoints of which nothing is known, since their hosts' agents do not answer such probes.
func (g *tunnels) unknown() []Finding {
	if len(g.mute) == 0 {
		return nil
	}
	ends := slices.SortedFunc(maps.Keys(g.mute), netip.Addr.Compare)
	f := g.finding(DoesNotKnow, ends, nil)
	f.Note = true
	f.Text = fmt.Sprintf("nothing is known of the tunnels of switch %s to %s: the agent there does not know probes of "+
		"tunnels", g.sw, some(f.Ends))
	f.Remedy = "update it: agents of earlier versions do not answer such probes, and forward all the same"
	return []Finding{f}
}

// finding begins one about two sets of endpoints.
func (g *tunnels) finding(code Code, ends, others []netip.Addr) Finding {
	f := Finding{Code: code, Switch: g.sw, VLANs: []uint16{}, Note: code == Lossy || code == Slow}
	for _, a := range ends {
		f.Ends, f.Hosts = append(f.Ends, g.name[a]), append(f.Hosts, g.host[a])
	}
	for _, a := range others {
		f.Others, f.Hosts = append(f.Others, g.name[a]), append(f.Hosts, g.host[a])
	}
	return f
}

// oneWay finds the pairs between which packets pass in one direction.
func (g *tunnels) oneWay() (out []Finding) {
	for _, k := range slices.SortedFunc(maps.Keys(g.deaf), couple.compare) {
		delete(g.lost, k)
		from, to := k.a, k.b // what from sends arrives
		if g.deaf[k] == k.b {
			from, to = k.b, k.a
		}
		if len(out) == mostTunnelFindings {
			break
		}
		f := g.finding(WayOneWay, []netip.Addr{from}, []netip.Addr{to})
		f.Text = fmt.Sprintf("packets of the tunnel of switch %s pass from %s to %s, and not back", g.sw, g.name[from],
			g.name[to])
		f.Remedy = fmt.Sprintf("look for a filter that drops UDP to port %d from %s to %s, and for different ways of "+
			"the two directions", g.port, to, from)
		out = append(out, f)
	}
	return out
}

func (k couple) compare(o couple) int { return cmp.Or(k.a.Compare(o.a), k.b.Compare(o.b)) }

// unreachable finds endpoints to which nothing passes, and then the pairs between which nothing passes.
func (g *tunnels) unreachable() (out []Finding) {
	if len(g.lost) > 1 && len(g.passing) == 0 && len(endsOf(g.lost)) > 2 {
		ends := endsOf(g.lost)
		f := g.finding(Unreachable, ends, nil)
		f.Text = fmt.Sprintf("no packets of the tunnel of switch %s pass between any of %d endpoints (%s)", g.sw,
			len(ends), some(f.Ends))
		f.Remedy = fmt.Sprintf("have the network between the hosts let UDP port %d pass", g.port)
		g.sayAway(&f, ends)
		return []Finding{f}
	}
	alive := endsOf(g.passing)
	for _, dead := range endsOf(g.lost) {
		var others []netip.Addr
		for k := range g.lost {
			if o, ok := k.other(dead); ok && slices.Contains(alive, o) {
				others = append(others, o)
			}
		}
		if len(others) < 2 || slices.Contains(alive, dead) {
			continue
		}
		slices.SortFunc(others, netip.Addr.Compare)
		f := g.finding(Unreachable, []netip.Addr{dead}, others)
		f.Text = fmt.Sprintf("tunnel endpoint %s of switch %s is unreachable: none of the %d endpoints that probe "+
			"it gets an answer (%s)", g.name[dead], g.sw, len(others), some(f.Others))
		f.Remedy = fmt.Sprintf("see whether the host and its agent run, whether it has the address, whether its "+
			"uplinks are up, and whether UDP port %d passes to it", g.port)
		g.sayAway(&f, []netip.Addr{dead})
		out = append(out, f)
		for k := range g.lost {
			if _, has := k.other(dead); has {
				delete(g.lost, k)
			}
		}
	}
	return append(out, g.spots(g.lost, g.nothing)...)
}

// other returns the other end.
func (k couple) other(a netip.Addr) (netip.Addr, bool) {
	switch a {
	case k.a:
		return k.b, true
	case k.b:
		return k.a, true
	}
	return netip.Addr{}, false
}

// endsOf are the endpoints of pairs, in order.
func endsOf[V any](pairs map[couple]V) (list []netip.Addr) {
	for k := range pairs {
		list = append(list, k.a, k.b)
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return slices.Compact(list)
}

// nothing, short, loses and lags word a finding about an endpoint and the others with which it has the fault.
func (g *tunnels) nothing(end netip.Addr, others []netip.Addr, _ []*Tunnel) Finding {
	f := g.finding(Unreachable, []netip.Addr{end}, others)
	f.Text = fmt.Sprintf("no packets of the tunnel of switch %s pass between %s and %s", g.sw, g.name[end],
		some(f.Others))
	f.Remedy = fmt.Sprintf("see whether both hosts and their agents run and have the addresses, and whether routers "+
		"and filters between them let UDP port %d pass", g.port)
	g.sayAway(&f, append([]netip.Addr{end}, others...))
	return f
}

func (g *tunnels) short(fits int) func(netip.Addr, []netip.Addr, []*Tunnel) Finding {
	return func(end netip.Addr, others []netip.Addr, list []*Tunnel) Finding {
		f := g.finding(MTULow, []netip.Addr{end}, others)
		f.Have, f.Want = fits, g.mtu
		outer := 50
		if end.Is6() {
			outer = 70
		}
		f.Text = fmt.Sprintf("the tunnel of switch %s carries packets of guests of up to %d bytes between %s and %s, "+
			"and their MTU is %d", g.sw, fits, g.name[end], some(f.Others), g.mtu)
		f.Remedy = fmt.Sprintf("raise the MTU of the network between them to at least %d, or lower that of the "+
			"guests to %d", g.mtu+outer, fits)
		return f
	}
}

func (g *tunnels) loses(end netip.Addr, others []netip.Addr, list []*Tunnel) Finding {
	most := 0
	for _, t := range list {
		most = max(most, t.Loss)
	}
	f := g.finding(Lossy, []netip.Addr{end}, others)
	f.Text = fmt.Sprintf("in the tunnel of switch %s, up to %d %% of the probes between %s and %s get lost", g.sw, most,
		g.name[end], some(f.Others))
	f.Remedy = "look at errors, queues and the load of the network between them, and at the load of the hosts"
	return f
}

func (g *tunnels) lags(end netip.Addr, others []netip.Addr, list []*Tunnel) Finding {
	worst := list[0]
	for _, t := range list {
		if t.Delay > worst.Delay {
			worst = t
		}
	}
	f := g.finding(Slow, []netip.Addr{end}, others)
	f.Text = fmt.Sprintf("in the tunnel of switch %s, probes between %s and %s take up to %s, usually %s", g.sw,
		g.name[end], some(f.Others), worst.Delay.Round(100*time.Microsecond), worst.Usual.Round(10*time.Microsecond))
	f.Remedy = "look at queues and the load of the network between them, at its routes, and at the load of the hosts"
	return f
}

// spots makes findings of pairs with the same fault: of the endpoint that most of them have first.
func (g *tunnels) spots(pairs map[couple]*Tunnel, word func(netip.Addr, []netip.Addr, []*Tunnel) Finding) (
	out []Finding) {
	pairs = maps.Clone(pairs)
	for len(pairs) > 0 {
		count := map[netip.Addr]int{}
		for k := range pairs {
			count[k.a]++
			count[k.b]++
		}
		most := slices.MaxFunc(slices.Collect(maps.Keys(count)), func(a, b netip.Addr) int {
			return cmp.Or(cmp.Compare(count[a], count[b]), b.Compare(a))
		})
		var others []netip.Addr
		var list []*Tunnel
		for k, t := range pairs {
			if o, has := k.other(most); has {
				others, list = append(others, o), append(list, t)
				delete(pairs, k)
			}
		}
		slices.SortFunc(others, netip.Addr.Compare)
		f := word(most, others, list)
		if len(out)+1 == mostTunnelFindings && len(pairs) > 0 {
			f.Text = strings.TrimSuffix(f.Text, ".") + fmt.Sprintf("; likewise %d more pairs of endpoints", len(pairs))
			return append(out, f)
		}
		out = append(out, f)
	}
	return out
}
