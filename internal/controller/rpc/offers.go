package rpc

import (
	"net/netip"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/spec"
)

// A port whose guest comes by a migration waits at the target, which offers to take over what belongs to the port. The
// controller that the target is connected to finds the host that the guest comes from, names each of the two to the
// other one, and has no further part in it: they speak with one another.

// Bounds of what a host offers.
const (
	// mostOffers is how many offers of one host count: as many as a host has ports.
	mostOffers = 4096
	// mostAt is how many addresses of an offer count.
	mostAt = 8
	// longestName bounds the texts of an offer, in bytes.
	longestName = 256
)

// offering is the part of a fleet that brings hosts together between which ports move.
type offering struct{ *fleet }

// meeting is what is known of moves. The fleet's lock guards it.
type meeting struct {
	// wake holds one token when hosts have to be brought together anew, news when other controllers have to hear of it.
	wake, news chan struct{}
	// sources are the hosts that were found, by the offer.
	sources map[offerKey]chosen
	// wanted are the adapters of all offers, here and at other controllers.
	wanted map[nic]bool
	// moves are what hosts are to know, by their ids.
	moves map[string]*controllerv1.HostMoves
	// away is what other controllers have said last, by their ids, told what they were told.
	away map[string]awayMoves
	// flapping are MACs that hosts are to know of, by their ids.
	flapping map[string]*controllerv1.HostFlapping
	told     map[string]*controllerv1.SharedMoves
}

// chosen is the source of an offer, with the port's generation there.
type chosen struct {
	host       *host
	generation uint64
}

// id is the host's; "" for none.
func (c chosen) id() string {
	if c.host == nil {
		return ""
	}
	return c.host.id
}

// offerKey is an offer of a host.
type offerKey struct{ host, move string }

func newMeeting() *meeting {
	return &meeting{wake: make(chan struct{}, 1), news: make(chan struct{}, 1), sources: map[offerKey]chosen{},
		moves: map[string]*controllerv1.HostMoves{}, away: map[string]awayMoves{},
		told: map[string]*controllerv1.SharedMoves{}}
}

// look says that hosts may have to be brought together anew. It does not block.
func (m *meeting) look() { token(m.wake) }

func token(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// arrived takes in what a host offers that has connected: what it offered before is over.
func (f offering) arrived(h *host, c *conn, said *controllerv1.HostOffers) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h.conn == c {
		f.offered(h, said)
	}
}

// offered takes in all that a host offers. The caller holds the lock.
func (f offering) offered(h *host, said *controllerv1.HostOffers) {
	was := h.offers
	flapping(f).said(h, said.GetAgain())
	h.offers, h.offered = nil, map[nic]bool{}
	for _, o := range said.GetOffers()[:min(len(said.GetOffers()), mostOffers)] {
		if o = checked(o); o != nil {
			h.offers = append(h.offers, o)
			h.offered[nic{o.GetVm(), o.GetAdapter()}] = true
		}
	}
	if n := len(said.GetOffers()) - len(h.offers); n > 0 && !h.conn.beyondOffer {
		h.conn.beyondOffer = true
		f.log.Warn("offers of a host to take over ports cannot be understood; they are left out", "host", h.doc.Name,
			"offers", n)
	}
	if len(was)+len(h.offers) > 0 {
		f.meeting.look()
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

// reported takes in that hosts may have to be brought together anew by what a host has reported. The caller holds the
// lock.
func (f offering) reported() {
	if len(f.meeting.wanted) > 0 {
		f.meeting.look()
	}
}

// removed forgets a host. The caller holds the lock.
func (f offering) removed(h *host) {
	h.offers, h.offered = nil, nil
	f.meeting.look()
}

// addMoves adds to a message what a host has to know of moves, where it is another; m is nil for no message so far. A
// host that has been told of none since it connected goes on with what it was told before, by whichever controller.
func (f offering) addMoves(h *host, c *conn, m *controllerv1.FollowSliceResponse) *controllerv1.FollowSliceResponse {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.meeting.moves[h.id]
	if now == nil && c.moves != nil {
		now = &controllerv1.HostMoves{}
	}
	if now == nil || proto.Equal(now, c.moves) {
		return m
	}
	if m == nil {
		m = &controllerv1.FollowSliceResponse{}
	}
	m.Moves, c.moves = now, now
	return m
}
