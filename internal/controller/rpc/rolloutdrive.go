package rpc

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/addresses"
	"heddle/internal/controller/fanout"
	"heddle/internal/controller/inventory"
	"heddle/internal/controller/rollout"
	"heddle/internal/controller/rollout/driving"
	"heddle/internal/controller/rollout/kept"
	"heddle/internal/controller/rollout/vitals"
	"heddle/internal/platform/audit"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/rpcerrors"
)

// rolloutWorld is the hosts, for the driver of a rollout.
type rolloutWorld struct {
	everywhere *everywhere
	vitals     vitals.Reader
}

func worldOf(s *Server) rolloutWorld { return rolloutWorld{s.everywhere(), vitalsOf(s)} }

// lostTime is how long a host may be on its way to another controller.
const lostTime = 15 * time.Second

// Changed implements driving.World.
func (w rolloutWorld) Changed() <-chan struct{} {
	w.everywhere.fleet.mu.Lock()
	defer w.everywhere.fleet.mu.Unlock()
	return w.everywhere.fleet.changed
}

// Unanswered implements driving.World.
func (w rolloutWorld) Unanswered(names []string) []string {
	w.everywhere.fleet.mu.Lock()
	defer w.everywhere.fleet.mu.Unlock()
	return w.everywhere.fleet.pending(names)
}

// Vitals implements driving.World.
func (w rolloutWorld) Vitals(ctx context.Context, names, switches []string) map[string]rollout.Vitals {
	return w.vitals.Of(ctx, names, switches)
}

// Hosts implements driving.World.
func (w rolloutWorld) Hosts(ctx context.Context, r *rollout.Rollout, before map[string]driving.Host,
	full bool) map[string]driving.Host {
	there := &fanout.Answers{}
	if len(w.everywhere.roster.Others()) > 0 {
		var names []string // all
		for name, h := range before {
			if !full && (h.Soon || h.State == driving.Changing) {
				names = append(names, name)
			}
		}
		if full || len(names) > 0 {
			there = w.everywhere.askHosts(ctx, &controllerv1.GetHostsHereRequest{Names: names})
		}
	}
	f := w.everywhere.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make(map[string]driving.Host, len(before))
	for id, stage := range (withheld{f}).stagesOf(r) {
		h := f.hosts[id]
		if h == nil {
			continue
		}
		was, known := before[h.doc.Name]
		if h.conn == nil && there.Hosts[id] == nil && known && !full {
			all[h.doc.Name] = was
			continue
		}
		one := driving.Host{Name: h.doc.Name, Stage: stage}
		state, problems, since := w.brief(h, there)
		stand(&one, state, problems, time.Since(since), stage < r.Begun)
		all[h.doc.Name] = one
	}
	return all
}

// brief is how a host follows the definition, wherever it is connected. The caller holds the lock.
func (w rolloutWorld) brief(h *host, there *fanout.Answers) (state controllerv1.HostState, problems []string,
	since time.Time) {
	at := there.Hosts[h.id].GetHost()
	switch {
	case h.conn != nil:
		state, problems = w.everywhere.fleet.state(h)
		return state, problems, h.since
	case there.Hosts[h.id].GetConnected() && !at.GetStale():
		return at.GetState(), at.GetProblems(), at.GetSince().AsTime()
	}
	// It was lost when it was heard of last, by whomever: a host that is connected elsewhere since an hour ago, to a
	// controller that was lost a moment ago, is on its way.
	since = h.since
	if at != nil {
		since = peers.Later(since, there.Hosts[h.id].GetHeard().AsTime())
		if !there.Hosts[h.id].GetConnected() {
			since = peers.Later(since, at.GetSince().AsTime())
		}
	}
	return controllerv1.HostState_HOST_STATE_DISCONNECTED, nil, since
}

// stand takes in how a host is: since is for how long it is connected, or was not. has: it is to have the change.
func stand(s *driving.Host, state controllerv1.HostState, problems []string, since time.Duration, has bool) {
	s.State, s.Problems = driving.Unchanged, problems
	if has {
		s.State = driving.Changed
	}
	switch state {
	case controllerv1.HostState_HOST_STATE_DISCONNECTED:
		s.Soon, s.Trouble = since < lostTime, "it is not connected to a controller"
		if has {
			s.State = driving.Away
		}
	case controllerv1.HostState_HOST_STATE_PENDING:
		s.Soon = true
		if has {
			s.State = driving.Changing
		}
	case controllerv1.HostState_HOST_STATE_OUT_OF_SYNC:
		s.Trouble = "it can't make the change: " + firstOf(problems)
	case controllerv1.HostState_HOST_STATE_REVERTED:
		s.Trouble = "it lost its controllers with the change, and went back: " + firstOf(problems)
	case controllerv1.HostState_HOST_STATE_DOWN:
		s.Trouble = "its guests are cut off: " + firstOf(problems)
	}
	if has && s.Trouble != "" && s.State != driving.Away {
		s.State = driving.Failed
	}
}

func firstOf(lines []string) string {
	switch len(lines) {
	case 0:
		return "it does not say why"
	case 1:
		return lines[0]
	}
	return fmt.Sprintf("%s (and %d more)", lines[0], len(lines)-1)
}

// stagedHosts is which hosts an open rollout concerns, with their stages, by the hosts' ids; as of a definition and a
// number of hosts.
type stagedHosts struct {
	of     *inventory.Inventory
	hosts  int
	stages map[string]int
}

// stagesOf are the hosts that an open rollout concerns, by their ids, with their stages. The caller holds the lock.
func (f withheld) stagesOf(r *rollout.Rollout) map[string]int {
	o := f.rolling.open[r.ID]
	if o == nil || o.bad != nil {
		return nil
	}
	if o.staged.of == f.inventory && o.staged.hosts == len(f.hosts) {
		return o.staged.stages
	}
	stages := map[string]int{}
	before, err := f.rolling.undone(f.inventory, []string{r.ID})
	if err != nil {
		return nil
	}
	for id, h := range f.hosts {
		if f.differs(h, before, f.inventory, nil) {
			stages[id] = r.Order.StageOf(f.memberOf(h))
		}
	}
	o.staged = stagedHosts{f.inventory, len(f.hosts), stages}
	return stages
}

// differs reports whether a host is handed something else by one definition than by another, with these addresses; by
// the whole of each, whatever is held back. The caller holds the lock.
func (f withheld) differs(h *host, a, b *inventory.Inventory, g *addresses.Grant) bool {
	granted := g.Of(f.addresses, h.doc.Name)
	one, _, errA := contents(f).sliceBy(a, h, granted)
	two, _, errB := contents(f).sliceBy(b, h, granted)
	return errA != nil || errB != nil || one.set.Hash() != two.set.Hash()
}

// rolloutRecord is where rollouts are kept, for their driver.
type rolloutRecord struct {
	kept.Record
	audit *audit.Log
	// takeBack takes the change of one back, fill gives addresses back that nobody needs.
	takeBack func(ctx context.Context, id, who, message string, force bool) error
	fill     func(context.Context) error
}

func recordOf(s *Server) rolloutRecord {
	return rolloutRecord{kept.Record{Store: s.Store, Log: s.Log}, s.Audit, people{s}.takeBack,
		granter{s}.fillAddresses}
}

// TakeBack implements driving.Record.
func (c rolloutRecord) TakeBack(ctx context.Context, id string) error {
	err := c.takeBack(ctx, id, "", "", false)
	switch connect.CodeOf(err) {
	case connect.CodeFailedPrecondition, connect.CodeInvalidArgument:
		_, text := rpcerrors.CodeAndText(err)
		return &driving.Refused{Why: text}
	case connect.CodeAborted:
		return driving.ErrOther
	}
	return err
}

// Said implements driving.Record: what a rollout does by itself is logged and audited, as what people do is.
func (c rolloutRecord) Said(ctx context.Context, was, now rollout.Rollout) {
	text := fmt.Sprintf("stage %d of %d begins", now.Begun, len(now.Order.Stages))
	objects := []string{"rollout " + now.ID}
	if was.State != now.State {
		text = string(now.State)
	}
	for _, f := range now.Found {
		objects = append(objects, findingText(f))
	}
	if was.State == now.State {
		objects = objects[:1]
	}
	c.Log.Info("rollout", "id", now.ID, "what", text, "found", objects[1:], "note", now.Note)
	if c.audit == nil {
		return
	}
	call, err := c.audit.Begin(audit.Entry{Who: "the controller", Call: "DriveRollout",
		Objects: append(objects, text)})
	if err == nil {
		err = call.End(audit.Done, nil, now.Note)
	}
	if err != nil {
		c.Log.Error("the audit log can't be written", "err", err)
	}
	if now.State == rollout.Done {
		c.release(ctx)
	}
}

// release gives addresses back that only the definition before a rollout needed.
func (c rolloutRecord) release(ctx context.Context) {
	if err := c.fill(ctx); err != nil {
		c.Log.Warn("addresses that no host port has any more are not given back yet", "err", err)
	}
}

func findingText(f rollout.Finding) string {
	if f.Host == "" {
		return f.What
	}
	return "host " + f.Host + ": " + f.What
}
