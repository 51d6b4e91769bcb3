package calls

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/definition"
	"heddle/internal/controller/rollout"
	"heddle/internal/controller/rollout/driverlease"
	"heddle/internal/controller/rollout/driving"
	"heddle/internal/controller/rollout/kept"
	"heddle/internal/controller/rollout/staged"
	"heddle/internal/controller/visibility"
	"heddle/internal/platform/access"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
)

// Service answers people about changes in stages.
type Service struct {
	Store definition.Store
	Epoch int64 // of the data
	// Record is where rollouts are kept, Hosts are those of one and how they stand.
	Record kept.Record
	Hosts  func(context.Context, *rollout.Rollout) map[string]driving.Host
	// Release gives back what only the definition before a rollout needed.
	Release func(context.Context)
	// TakeBack takes the change of a rollout back, for somebody.
	TakeBack func(ctx context.Context, id, who, message string, force bool) error
}

// mostTries is how often a rollout is changed anew because its driver was faster.
const mostTries = 100

// all are the rollouts that the caller sees, the newest first.
func (c Service) all(ctx context.Context) (list []kept.Rollout, err error) {
	if err := c.Store.Sync(ctx); err != nil {
		return nil, rpcerrors.OfStore(err)
	}
	for _, o := range c.Store.List(kept.Kind) {
		k, err := kept.Of(o)
		if err != nil {
			return nil, err
		}
		if sees(ctx, &k) {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, func(a, b kept.Rollout) int { return b.Started.Compare(a.Started) })
	return list, nil
}

// sees reports whether a caller sees all switches of a rollout.
func sees(ctx context.Context, k *kept.Rollout) bool {
	a := access.GrantedTo(ctx)
	return a.SeesAll() || !slices.ContainsFunc(k.Switches, func(sw string) bool {
		return sw == rollout.All || !visibility.SeesNamed(a, slice.Key{Kind: slice.Switch, Name: sw})
	})
}

// ListRollouts lists them.
func (c Service) ListRollouts(ctx context.Context, _ *controllerv1.ListRolloutsRequest) (
	*controllerv1.ListRolloutsResponse, error) {
	list, err := c.all(ctx)
	if err != nil {
		return nil, err
	}
	out := &controllerv1.ListRolloutsResponse{}
	for i := range list {
		out.Rollouts = append(out.Rollouts, c.shownRollout(&list[i]))
	}
	return out, nil
}

// shownRollout is a rollout with who drives it.
func (c Service) shownRollout(k *kept.Rollout) *controllerv1.Rollout {
	out := staged.Message(k, time.Now())
	if k.Driven() {
		out.Driver = driverlease.Holder(c.Store)
	}
	return out
}

// one is the rollout of that id; "" for the only one that is open or, where ended ones count, else the newest.
func (c Service) one(ctx context.Context, id string, ended bool) (*kept.Rollout, error) {
	list, err := c.all(ctx)
	if err != nil {
		return nil, err
	}
	var open []string
	var found *kept.Rollout
	for i := range list {
		switch k := &list[i]; {
		case k.ID == id:
			return k, nil
		case id == "" && k.Open():
			open, found = append(open, k.ID), k
		case id == "" && ended && i == 0:
			found = k
		}
	}
	switch {
	case len(open) > 1:
		return nil, connect.NewError(connect.CodeInvalidArgument, "several rollouts are open: name one of "+
			strings.Join(open, ", "))
	case id != "":
		return nil, connect.NewError(connect.CodeNotFound, fmt.Sprintf("there is no rollout %s: see heddle rollout "+
			"list",
			id))
	case found == nil:
		return nil, connect.NewError(connect.CodeNotFound, "there is no rollout: heddle definition apply --stages "+
			"begins one")
	}
	return found, nil
}

// Making is the open rollout that the caller sees, where a change is asked for that there is already; nil for none.
func (c Service) Making(ctx context.Context) *controllerv1.Rollout {
	if k, err := c.one(ctx, "", false); err == nil {
		return c.shownRollout(k)
	}
	return nil
}

// GetRollout returns one, with its hosts.
func (c Service) GetRollout(ctx context.Context, q *controllerv1.GetRolloutRequest) (*controllerv1.GetRolloutResponse,
	error) {
	k, err := c.one(ctx, q.GetId(), true)
	if err != nil {
		return nil, err
	}
	return &controllerv1.GetRolloutResponse{Rollout: c.withHosts(ctx, k)}, nil
}

// withHosts is a rollout with its hosts, of one that is open.
func (c Service) withHosts(ctx context.Context, k *kept.Rollout) *controllerv1.Rollout {
	out := c.shownRollout(k)
	if !k.Open() {
		return out
	}
	away, changing := 0, 0
	for _, h := range c.Hosts(ctx, &k.Rollout) {
		if h.Stage >= len(out.Stages) {
			continue
		}
		s := out.Stages[h.Stage]
		s.Hosts = append(s.Hosts, &controllerv1.RolloutHost{Name: h.Name, State: h.State, Problems: h.Problems})
		if h.Stage < k.Begun && h.State == driving.Changing {
			changing++
		}
		if h.Stage == k.Begun-1 && h.State == driving.Away {
			away++
		}
	}
	staged.SortHosts(out)
	if k.State == rollout.Running && k.Begun > 0 && k.Settled.IsZero() && out.Note == "" {
		switch {
		case changing > 0:
			out.Note = fmt.Sprintf("%d hosts make the change", changing)
		case away > 0:
			out.Note = fmt.Sprintf("%d hosts of the stage are away: it waits until one of them is back", away)
		}
	}
	return out
}

// may refuses who may not make the change of a rollout, or take it back.
func (c Service) may(ctx context.Context, k *kept.Rollout) error {
	undo, _, err := kept.UndoOf(*k, func(key store.Key) ([]byte, bool) {
		o, ok := c.Store.Get(key)
		return o.Doc, ok
	})
	if err != nil {
		return err
	}
	have, _ := definition.Stored(c.Store)
	who, _ := access.Of(ctx)
	if err := visibility.Judge(who.Title(), access.GrantedTo(ctx), have, undo); err != nil {
		return access.Refused(err)
	}
	return nil
}

// change replaces a rollout by what do makes of it.
func (c Service) change(ctx context.Context, id string, do func(rollout.Rollout) (rollout.Rollout, error)) (
	*controllerv1.Rollout, error) {
	for range mostTries {
		k, err := c.one(ctx, id, false)
		if err == nil {
			err = c.may(ctx, k)
		}
		if err != nil {
			return nil, err
		}
		access.Note(ctx, "rollout "+k.ID)
		next, err := do(k.Rollout)
		if err != nil {
			return nil, connect.NewError(connect.CodeFailedPrecondition, err.Error())
		}
		_, err = c.Record.Replace(ctx, next, k.Version)
		switch {
		case errors.Is(err, driving.ErrOther): // its driver was faster
			continue
		case err != nil:
			return nil, rpcerrors.OfStore(err)
		}
		if next.State == rollout.Done {
			c.Release(ctx)
		}
		if k, err = c.one(ctx, k.ID, true); err != nil {
			return nil, err
		}
		return c.withHosts(ctx, k), nil
	}
	return nil, connect.NewError(connect.CodeAborted, "the rollout is changed by others all the time: try again")
}

// PauseRollout keeps the next stage from beginning.
func (c Service) PauseRollout(ctx context.Context, q *controllerv1.PauseRolloutRequest) (
	*controllerv1.PauseRolloutResponse, error) {
	r, err := c.change(ctx, q.GetId(), func(r rollout.Rollout) (rollout.Rollout, error) {
		return r.Pause(access.NameOf(ctx), time.Now().UTC())
	})
	return &controllerv1.PauseRolloutResponse{Rollout: r}, err
}

// ResumeRollout goes on with one that was paused or has halted, or gives all hosts the change.
func (c Service) ResumeRollout(ctx context.Context, q *controllerv1.ResumeRolloutRequest) (
	*controllerv1.ResumeRolloutResponse, error) {
	r, err := c.change(ctx, q.GetId(), func(r rollout.Rollout) (rollout.Rollout, error) {
		if q.GetAll() {
			return r.Finish(access.NameOf(ctx), time.Now().UTC())
		}
		return r.Resume(c.Epoch)
	})
	return &controllerv1.ResumeRolloutResponse{Rollout: r}, err
}

// AbortRollout takes the change back from all hosts that have it.
func (c Service) AbortRollout(ctx context.Context, q *controllerv1.AbortRolloutRequest) (
	*controllerv1.AbortRolloutResponse, error) {
	k, err := c.one(ctx, q.GetId(), false)
	if err == nil {
		err = c.may(ctx, k)
	}
	if err != nil {
		return nil, err
	}
	access.Note(ctx, "rollout "+k.ID)
	if err := c.TakeBack(ctx, k.ID, access.NameOf(ctx), q.GetMessage(), q.GetForce()); err != nil {
		return nil, err
	}
	if k, err = c.one(ctx, k.ID, true); err != nil {
		return nil, err
	}
	return &controllerv1.AbortRolloutResponse{Rollout: c.withHosts(ctx, k)}, nil
}
