package agent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"maps"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	hostv1 "heddle/api/heddle/host/v1"
	"heddle/internal/agent/ferry"
	"heddle/internal/agent/moves"
	"heddle/internal/agent/state"
)

// openDoor prepares what hosts say to each other about moves. The door itself opens when a port waits for its guest.
func (a *Agent) openDoor(o Options) {
	a.moving.door = ferry.New(ferry.Options{Listen: o.MoveListen, Identity: a.membership.between,
		Expect: a.moving.expected, Take: a.moving.take, First: a.membership.local, Log: a.log})
	out := ferry.NewCaller(ferry.CallerOptions{Identity: a.membership.between})
	a.moving.caller = out
	a.closers = append(a.closers, func() error { out.Close(); return nil })
}

// begins makes the record of a port that begins to wait for its guest.
func (mv *moving) begins(t *state.Travel, wait uint32, now time.Time) {
	if h := t.Here; h != nil {
		h.Gone(now, "the port waits for its guest anew")
		t.Shelve(h.Track)
		if mv.goods != nil && h.Confirmed > 0 {
			mv.goods.drop(t.Port)
		}
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	t.Here = moves.Begin(hex.EncodeToString(id), wait, now)
}

// offers tells the controllers which moves this host takes over. The door is open while such moves are.
func (mv *moving) offers() {
	now := time.Now()
	list := &controllerv1.HostOffers{}
	expects := map[string]string{}
	for _, t := range mv.state.Travels {
		h := t.Here
		if h == nil || !h.Listens(now) {
			continue
		}
		expects[h.Move] = h.Host
		if h.Offers(now) {
			list.Offers = append(list.Offers, &controllerv1.MoveOffer{Move: h.Move, Vm: t.VM, Adapter: t.Adapter,
				Switch: t.Port.Switch, Name: t.Port.Name, PortGroup: mv.portGroupOf(t), Generation: t.Generation,
				Confirmed: h.Confirmed})
		}
	}
	mv.mu.Lock()
	same := maps.Equal(mv.expects, expects)
	mv.expects = expects
	mv.mu.Unlock()
	list.Again = mv.flaps.list(now)
	if mv.door == nil || same && len(expects) == 0 {
		mv.offer(&controllerv1.HostOffers{Again: list.Again}) // nothing is said twice
		return
	}
	addresses := mv.opens(len(expects) > 0)
	if len(addresses) == 0 {
		list.Offers = nil
	}
	for _, o := range list.Offers {
		o.Addresses = addresses
	}
	mv.offer(list)
}

// opens opens or closes the door, and returns its addresses.
func (mv *moving) opens(wanted bool) []string {
	switch {
	case wanted:
		addresses, err := mv.door.Open()
		if err != nil {
			mv.Complain("take in what ports had where they come from", err)
			return nil
		}
		mv.open = true
		return addresses
	case mv.open:
		mv.door.Close()
		mv.open = false
	}
	return nil
}

func (mv *moving) portGroupOf(t *state.Travel) string {
	if p := mv.ports.runTime(t.Port.Name); p != nil {
		return p.PortGroup
	}
	return ""
}

// expected returns the id of the host that may call for a move to this host, "" while it is not known. It is called
// from any goroutine.
func (mv *moving) expected(move string) (host string, ok bool) {
	mv.mu.Lock()
	defer mv.mu.Unlock()
	host, ok = mv.expects[move]
	return host, ok
}

// hereOf returns the record of a move to this host, nil for none.
func (mv *moving) hereOf(move string) *state.Travel {
	for _, t := range mv.state.Travels {
		if t.Here != nil && t.Here.Move == move {
			return t
		}
	}
	return nil
}

// take takes in a copy of the source, and returns when it is on disk. The door has checked that it is the source that
// the controllers named.
func (mv *moving) take(ctx context.Context, q *hostv1.CopyPortRequest) (out *hostv1.CopyPortResponse, err error) {
	says, ok := map[hostv1.SourcePhase]moves.Says{
		hostv1.SourcePhase_SOURCE_PHASE_RUNNING: moves.Runs,
		hostv1.SourcePhase_SOURCE_PHASE_STOPPED: moves.Stops,
		hostv1.SourcePhase_SOURCE_PHASE_RESUMED: moves.Resumes,
	}[q.GetPhase()]
	if !ok || q.GetNumber() == 0 {
		return nil, connect.NewError(connect.CodeInvalidArgument, "a copy has a number and a phase")
	}
	c := moves.Copy{Number: q.GetNumber(), Says: says, Generation: moves.Believed(q.GetGeneration())}
	var u *unpacked
	if b := q.GetBundle(); mv.goods != nil && b != nil && c.Says != moves.Resumes {
		if u, err = mv.goods.unpack(b); err != nil {
			return nil, connect.NewError(connect.CodeUnavailable, err.Error())
		}
		defer u.discard()
	}
	return out, mv.Do(ctx, func() error {
		t := mv.hereOf(q.GetMove())
		if t == nil {
			return connect.NewError(connect.CodeNotFound, "this host has no such move: it was taken back, or is over")
		}
		if err := mv.takes(t, c, u); err != nil {
			mv.Complain("take in what a port had where it comes from", err)
			return connect.NewError(connect.CodeUnavailable, err.Error())
		}
		a := t.Here.Answer(t.Generation)
		out = &hostv1.CopyPortResponse{Confirmed: a.Confirmed, Generation: a.Generation,
			Phase: targetPhase(a.Phase)}
		return nil
	})
}

// takes does with a copy what the rules say. After an error everything is as before.
func (mv *moving) takes(t *state.Travel, c moves.Copy, u *unpacked) error {
	h, before := t.Here, marked(t)
	was, take := *h, h.Takes(c, t.Generation)
	if h.Over() || c.Number <= h.Heard {
		return nil
	}
	if mv.goods != nil && take == moves.Keep && u != nil {
		if err := mv.goods.keep(t.Port, c.Number, u); err != nil {
			return err
		}
		if h.Arrived() {
			mv.installs(t)
		}
	}
	if mv.goods != nil && take == moves.Drop {
		mv.goods.drop(t.Port)
	}
	h.Dealt(c, t.Generation, time.Now())
	if err := mv.ports.save(); err != nil {
		*h = was
		return err
	}
	if a := t.Away; take == moves.Keep && h.Arrived() && a != nil && a.Silent && !a.Left {
		a.Renewed(mv.packs(t)) // it has left since: what it came with goes after it
	}
	mv.tell(t, before)
	mv.look()
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
func (mv *moving) expect(m *controllerv1.MoveExpected) {
	t := mv.hereOf(m.GetMove())
	if t == nil {
		return
	}
	if _, drop := t.Here.Expected(m.GetHost(), m.GetHostName(), m.GetGeneration()); drop && mv.goods != nil {
		mv.goods.drop(t.Port)
	}
}
