package match

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/part"
	"heddle/internal/spec"
)

// Bounds of what a host offers.
const (
	// mostOffers is how many offers of one host count: as many as a host has ports.
	mostOffers = 4096
	// mostAt is how many addresses of an offer count.
	mostAt = 8
	// longestName bounds the texts of an offer, in bytes.
	longestName = 256
)

// offer is one that counts at this controller.
type offer struct {
	*controllerv1.MoveOffer
	of *host
}

func (o offer) adapter() part.Adapter { return part.AdapterOf(o.GetVm(), o.GetAdapter()) }
func (o offer) key() offerKey         { return offerKey{o.of.id, o.GetMove()} }

// offered takes in all that a host offers. The caller holds the lock.
func (b *Board) offered(h *host, said *controllerv1.HostOffers) {
	was := len(h.offers)
	h.offers, h.offered = nil, map[part.Adapter]bool{}
	for _, o := range said.GetOffers()[:min(len(said.GetOffers()), mostOffers)] {
		if o = checked(o); o != nil {
			h.offers = append(h.offers, o)
			h.offered[part.AdapterOf(o.GetVm(), o.GetAdapter())] = true
		}
	}
	if n := len(said.GetOffers()) - len(h.offers); n > 0 && !h.warned {
		h.warned = true
		b.Log.Warn("offers of a host to take over ports cannot be understood; they are left out", "host", h.name,
			"offers", n)
	}
	if was+len(h.offers) > 0 {
		b.look()
	}
}

// ended takes back what a host that is not connected here has offered. The caller holds the lock.
func (b *Board) ended(h *host) {
	if len(h.offers) > 0 {
		h.offers, h.offered = nil, nil
		b.look()
	}
}

// checked is an offer with what counts of it; nil for one that means nothing.
func checked(o *controllerv1.MoveOffer) *controllerv1.MoveOffer {
	texts := []string{o.GetAdapter(), o.GetSwitch(), o.GetName(), o.GetPortGroup()}
	if !validMove(o.GetMove()) || !spec.ValidUUID(o.GetVm()) || o.GetAdapter() == "" ||
		slices.ContainsFunc(texts, func(s string) bool { return len(s) > longestName }) {
		return nil
	}
	next := &controllerv1.MoveOffer{Move: o.GetMove(), Vm: strings.ToLower(o.GetVm()), Adapter: o.GetAdapter(),
		Switch: o.GetSwitch(), Name: o.GetName(), PortGroup: o.GetPortGroup(), Generation: o.GetGeneration(),
		Confirmed: o.GetConfirmed()}
	for _, text := range o.GetAddresses() {
		at, err := netip.ParseAddrPort(text)
		if err == nil && at.Port() != 0 && len(next.GetAddresses()) < mostAt {
			next.Addresses = append(next.Addresses, at.String())
		}
	}
	return next
}

// validMove reports whether that is the id of a move: 32 hexadecimal digits.
func validMove(id string) bool {
	return len(id) == 32 && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'f')
	})
}

// own are the offers for which this controller finds the sources: those of its hosts, and those of a host that has lost
// its connection a moment ago, unless it has another controller by now. The caller holds the lock.
func (b *Board) own() (list []offer) {
	for _, h := range b.hosts {
		if len(h.offers) == 0 || h.conn == nil && (!b.lingers(h) || b.isAway(h)) {
			continue
		}
		for _, o := range h.offers {
			list = append(list, offer{o, h})
		}
	}
	slices.SortFunc(list, func(a, b offer) int {
		return cmp.Or(cmp.Compare(a.GetMove(), b.GetMove()), cmp.Compare(a.of.id, b.of.id))
	})
	return list
}

// isAway reports whether another controller says that it has the host's connection. The caller holds the lock.
func (b *Board) isAway(h *host) bool {
	for _, said := range b.away {
		if said.hosts[h.id] {
			return true
		}
	}
	return false
}

// refuse leaves an offer out, which is logged once a connection.
func (b *Board) refuse(o offer) {
	if o.of.conn != nil && !o.of.warned {
		o.of.warned = true
		b.Log.Warn("a host offers to take over a port in a port group that is not its to serve; it is left out",
			"host", o.of.name, "switch", o.GetSwitch(), "group", o.GetPortGroup(), "vm", o.GetVm())
	}
}
