package migration

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"maps"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	hostv1 "heddle/api/heddle/host/v1"
	"heddle/internal/agent/moves"
	"heddle/internal/agent/portstate"
	"heddle/internal/agent/state"
)

// begins makes the record of a port that begins to wait for its guest.
func (mv *Part) begins(t *state.Travel, wait uint32, now time.Time) {
	if h := t.Here; h != nil {
		h.Gone(now, "the port waits for its guest anew")
		t.Shelve(h.Track)
		if mv.baggage != nil && h.Confirmed > 0 {
			mv.baggage.Drop(t.Port)
		}
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	t.Here = moves.Begin(hex.EncodeToString(id), wait, now)
}

// offers tells the controllers which moves this host takes over. The listener is open while such moves are.
func (mv *Part) offers() {
	now := time.Now()
	list := &controllerv1.HostOffers{}
	expects := map[string]string{}
	for _, t := range mv.records.all() {
		h := t.Here
		if h == nil || !h.Listens(now) {
			continue
		}
		expects[h.Move] = h.Host
		if h.Offers(now) {
			list.Offers = append(list.Offers, &controllerv1.MoveOffer{Move: h.Move, Vm: t.VM, Adapter: t.Adapter,
				Switch: t.Port.Switch, Name: t.Port.Name, PortGroup: mv.host.PortGroup(t.Port.Name),
				Generation: t.Generation,
				Confirmed:  h.Confirmed})
		}
	}
	mv.mu.Lock()
	same := maps.Equal(mv.expects, expects)
	mv.expects = expects
	mv.mu.Unlock()
	list.Again = mv.flaps.list(now)
	if mv.listener == nil || same && len(expects) == 0 {
		mv.says(&controllerv1.HostOffers{Again: list.Again}) // nothing is said twice
		return
	}
	addresses := mv.opens(len(expects) > 0)
	if len(addresses) == 0 {
		list.Offers = nil
	}
	for _, o := range list.Offers {
		o.Addresses = addresses
	}
	mv.says(list)
}

// says tells the controllers what this host offers.
func (mv *Part) says(all *controllerv1.HostOffers) {
	if mv.with != nil {
		mv.with.Offer(all)
	}
}

// opens opens or closes the listener, and returns its addresses.
func (mv *Part) opens(wanted bool) []string {
	switch {
	case wanted:
		addresses, err := mv.listener.Open()
		if err != nil {
			mv.host.Complain("take in what ports had where they come from", err)
			return nil
		}
		mv.listens = true
		return addresses
	case mv.listens:
		mv.listener.Close()
		mv.listens = false
	}
	return nil
}

// Expected returns the id of the host that may call for a move to this host, "" while it is not known. It is called
// from any goroutine.
func (mv *Part) Expected(move string) (host string, ok bool) {
	mv.mu.Lock()
	defer mv.mu.Unlock()
	host, ok = mv.expects[move]
	return host, ok
}

// Take takes in a copy of the source, and returns when it is on disk. The listener has checked that it is the source
// that the controllers named.
func (mv *Part) Take(ctx context.Context, q *hostv1.CopyPortRequest) (out *hostv1.CopyPortResponse, err error) {
	says, ok := map[hostv1.SourcePhase]moves.Says{
		hostv1.SourcePhase_SOURCE_PHASE_RUNNING: moves.Runs,
		hostv1.SourcePhase_SOURCE_PHASE_STOPPED: moves.Stops,
		hostv1.SourcePhase_SOURCE_PHASE_RESUMED: moves.Resumes,
	}[q.GetPhase()]
	if !ok || q.GetNumber() == 0 {
		return nil, connect.NewError(connect.CodeInvalidArgument, "a copy has a number and a phase")
	}
	c := moves.Copy{Number: q.GetNumber(), Says: says, Generation: moves.Believed(q.GetGeneration())}
	var u *portstate.Unpacked
	if b := q.GetBundle(); mv.baggage != nil && b != nil && c.Says != moves.Resumes {
		if u, err = mv.baggage.Unpack(b); err != nil {
			return nil, connect.NewError(connect.CodeUnavailable, err.Error())
		}
		defer u.Discard()
	}
	return out, mv.host.Loop.Do(ctx, func() error {
		t := mv.records.to(q.GetMove())
		if t == nil {
			return connect.NewError(connect.CodeNotFound, "this host has no such move: it was taken back, or is over")
		}
		if err := mv.takes(t, c, u); err != nil {
			mv.host.Complain("take in what a port had where it comes from", err)
			return connect.NewError(connect.CodeUnavailable, err.Error())
		}
		a := t.Here.Answer(t.Generation)
		out = &hostv1.CopyPortResponse{Confirmed: a.Confirmed, Generation: a.Generation,
			Phase: targetPhase(a.Phase)}
		return nil
	})
}

// takes does with a copy what the rules say. After an error everything is as before.
func (mv *Part) takes(t *state.Travel, c moves.Copy, u *portstate.Unpacked) error {
	h, before := t.Here, marked(t)
	was, take := *h, h.Takes(c, t.Generation)
	if h.Over() || c.Number <= h.Heard {
		return nil
	}
	if mv.baggage != nil && take == moves.Keep && u != nil {
		if err := mv.baggage.Keep(t.Port, c.Number, u); err != nil {
			return err
		}
		if h.Arrived() {
			mv.installs(t)
		}
	}
	if mv.baggage != nil && take == moves.Drop {
		mv.baggage.Drop(t.Port)
	}
	h.Dealt(c, t.Generation, time.Now())
	if err := mv.host.Save(); err != nil {
		*h = was
		return err
	}
	if a := t.Away; take == moves.Keep && h.Arrived() && a != nil && a.Silent && !a.Left {
		a.Renewed(mv.packs(t)) // it has left since: what it came with goes after it
	}
	mv.tell(t, before)
	mv.Look()
	mv.follow()
	return nil
}

func targetPhase(p moves.Phase) hostv1.TargetPhase {
	switch p {
	case moves.Active:
		return hostv1.TargetPhase_TARGET_PHASE_ACTIVE
	case moves.Cancelled:
		return hostv1.TargetPhase_TARGET_PHASE_GONE
	}
	return hostv1.TargetPhase_TARGET_PHASE_WAITING
}

// expect takes in which host may call for a move to this host.
func (mv *Part) expect(m *controllerv1.MoveExpected) {
	t := mv.records.to(m.GetMove())
	if t == nil {
		return
	}
	if _, drop := t.Here.Expected(m.GetHost(), m.GetHostName(), m.GetGeneration()); drop && mv.baggage != nil {
		mv.baggage.Drop(t.Port)
	}
}
