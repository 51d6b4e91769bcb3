package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect/v2"

	"heddle/internal/controller/store"
	"heddle/internal/identity"
)

// ControllerKind is the kind of the objects that say which controllers there are. They are named by their ids.
const ControllerKind store.Kind = "controller"

// Controller is one controller of the cluster.
type Controller struct {
	ID string `json:"-"`
	// Name is for people.
	Name string `json:"name"`
	// Address is where agents and the other controllers find it, HOST:PORT.
	Address string `json:"address"`
	// Peer is where the other members of etcd reach it; "" with an existing etcd cluster.
	Peer string `json:"peer,omitempty"`
	// API is where people and tools find it, HOST:PORT; "" for nowhere but at its socket.
	API string `json:"api,omitempty"`
	// Version is that of its program.
	Version string `json:"version,omitempty"`
	// Joined is when it joined with a token.
	Joined time.Time `json:"joined,omitzero"`
	// Kinds of objects of a definition that it knows, with spaces between; "" for a version that does not say it.
	Kinds string `json:"kinds,omitempty"`
	// MACs of its machine's adapters, with spaces between: a host that has a port with one of them runs it as a VM.
	MACs string `json:"macs,omitempty"`
}

// roster knows the controllers of the cluster, and speaks with the others.
type roster struct {
	store   Store
	self    Controller
	links   links
	syncing coalesced

	// last is which hosts other controllers had, by their ids.
	lastMu sync.Mutex
	last   map[string]hostsThen
}

// Announce writes where agents find this controller, and who it is, unless that is written already. It may be repeated
// when it is not known whether the write happened.
func (r *roster) Announce(ctx context.Context, c Controller) error {
	c.Kinds, c.MACs = kindsKnown(), ownMACs()
	r.self = c
	key := store.Key{Kind: ControllerKind, Name: c.ID}
	for {
		o, _ := r.store.Get(key)
		next := c
		var was Controller
		if json.Unmarshal(o.Doc, &was) == nil {
			next.Joined, was.ID = was.Joined, c.ID
		}
		if o.Version > 0 && was == next {
			return nil
		}
		doc, err := json.Marshal(next)
		if err != nil {
			return err
		}
		_, err = r.store.Write(ctx, []store.Change{{Key: key, Doc: doc, IfVersion: o.Version}})
		if !isConflict(err) {
			return err
		}
		if err := r.store.Sync(ctx); err != nil {
			return err
		}
	}
}

// cluster are all controllers, by name.
func (r *roster) cluster() (list []Controller) {
	for _, o := range r.store.List(ControllerKind) {
		c := Controller{}
		if json.Unmarshal(o.Doc, &c) == nil && c.Address != "" {
			c.ID = o.Name
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b Controller) int { return strings.Compare(nameOf(a), nameOf(b)) })
	return list
}

// others are the controllers besides this one.
func (r *roster) others() []Controller {
	return slices.DeleteFunc(r.cluster(), func(c Controller) bool { return c.ID == r.self.ID })
}

// controllers are the addresses of all controllers, HOST:PORT.
func (r *roster) controllers() (list []string) {
	for _, c := range r.cluster() {
		list = append(list, c.Address)
	}
	return list
}

// controllerOf is the controller that calls.
func controllerOf(ctx context.Context) (*identity.Peer, error) {
	c, _ := ctx.Value(callerKey{}).(caller)
	switch {
	case c.err != nil:
		return nil, connect.NewError(connect.CodePermissionDenied, c.err.Error())
	case c.peer == nil || c.peer.RenewOnly || c.peer.Name.Kind != identity.Controller:
		return nil, connect.NewError(connect.CodePermissionDenied, "this is for the controllers of the cluster")
	}
	return c.peer, nil
}

// nameOf is a controller's name, or its id where it has none.
func nameOf(c Controller) string {
	if c.Name == "" {
		return c.ID
	}
	return c.Name
}

// quorum is whether this controller is cut off from the majority of the controllers.
type quorum struct {
	// alone says why it serves no hosts; nil while it does.
	alone atomic.Pointer[error]
}

// watch sends the hosts away while this controller is cut off from the majority: another one may not be.
func (q *quorum) watch(ctx context.Context, s *Server) {
	tick := time.NewTicker(s.QuorumTime / 4)
	defer tick.Stop()
	var since time.Time // of the loss
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		err := s.Store.Stale()
		switch {
		case err == nil:
			since = time.Time{}
			if q.alone.Swap(nil) != nil {
				s.Log.Info("this controller has a majority of the controllers again")
			}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= s.QuorumTime && q.alone.Load() == nil:
			why := fmt.Errorf("this controller is cut off from the majority of the controllers, and may have an old "+
				"definition: %w", err)
			q.alone.Store(&why)
			s.Log.Warn("no majority: the hosts are sent to other controllers, and reads are marked as stale", "err",
				err)
			s.fleet.endAll(why)
		}
	}
}

// refuse is an error while this controller may not serve hosts.
func (q *quorum) refuse() error {
	if why := q.alone.Load(); why != nil {
		return connect.NewError(connect.CodeUnavailable, (*why).Error())
	}
	return nil
}

// staleText says why reads may be old; "" where they are current.
func (r *roster) staleText() string {
	if err := r.store.Stale(); err != nil {
		return fmt.Sprintf("the controllers have no majority, so that this may be old: %v", err)
	}
	return ""
}

// endAll ends all connections of hosts.
func (f *fleet) endAll(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.hosts {
		if h.conn != nil {
			h.conn.end(why)
		}
	}
}
