package peers

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"heddle/internal/platform/batch"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
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
	// Knows are words for what else it knows, with spaces between; see KnowsRevoked.
	Knows string `json:"knows,omitempty"`
	// MACs of its machine's adapters, with spaces between: a host that has a port with one of them runs it as a VM.
	MACs string `json:"macs,omitempty"`
}

// Store is what a roster needs of the store.
type Store interface {
	Get(store.Key) (store.Object, bool)
	List(store.Kind) []store.Object
	Write(context.Context, []store.Change) (int64, error)
	Sync(context.Context) error
	// Confirm says why reads may be old, as the majority says itself; nil when they are current.
	Confirm(context.Context) error
	// Revision is that of what Get and List read.
	Revision() int64
	// Stale says why reads may be old; nil when they are current.
	Stale() error
}

// Roster knows the controllers of the cluster, and speaks with the others.
type Roster struct {
	store Store
	// This is the controller itself.
	This    Controller
	links   links
	syncing batch.Call
	// confirming is the same for who needs to know only that there is a majority.
	confirming batch.Call

	// last is which hosts other controllers had, by their ids.
	lastMu sync.Mutex
	last   map[string]map[string]then // by controller and host
}

// New is the roster of a store.
func New(st Store) *Roster { return &Roster{store: st} }

// Announce writes where agents find this controller, and who it is, unless that is written already. It may be repeated
// when it is not known whether the write happened.
func (r *Roster) Announce(ctx context.Context, c Controller) error {
	c.Knows, c.MACs = knownHere(), ownMACs()
	r.This = c
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
		if !rpcerrors.IsConflict(err) {
			return err
		}
		if err := r.store.Sync(ctx); err != nil {
			return err
		}
	}
}

// Cluster are all controllers, by name.
func (r *Roster) Cluster() (list []Controller) {
	for _, o := range r.store.List(ControllerKind) {
		c := Controller{}
		if json.Unmarshal(o.Doc, &c) == nil && c.Address != "" {
			c.ID = o.Name
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b Controller) int { return strings.Compare(NameOf(a), NameOf(b)) })
	return list
}

// Others are the controllers besides this one.
func (r *Roster) Others() []Controller {
	return slices.DeleteFunc(r.Cluster(), func(c Controller) bool { return c.ID == r.This.ID })
}

// Controllers are the addresses of all controllers, HOST:PORT.
func (r *Roster) Controllers() (list []string) {
	for _, c := range r.Cluster() {
		list = append(list, c.Address)
	}
	return list
}

// NameOf is a controller's name, or its id where it has none.
func NameOf(c Controller) string {
	if c.Name == "" {
		return c.ID
	}
	return c.Name
}
