package capability

import (
	"context"
	"log/slog"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/adapters"
	"heddle/internal/controller/fanout"
	"heddle/internal/controller/inventory"
	"heddle/internal/platform/access"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/store"
	"heddle/internal/spec"
)

// Capability is one that a program gives its controllers.
type Capability struct {
	Name string
	// Rules say who may make the calls that the part answers, by the calls' names.
	Rules access.Table
	// Kinds are the kinds of objects that are the capability's own.
	Kinds []Kind
	// New makes its parts in a controller. Each has the hooks that it needs, of this package and of package part.
	New func(Deps) []Part
}

// Part is what a capability is in one controller, or a piece of that. Its hooks may be called at the same time: it has
// a lock of its own.
type Part any

// Kind is a kind of objects of the store.
type Kind struct {
	Name store.Kind
	// Bound says by whose wish there are more of them, or larger ones, and what bounds that.
	Bound string
	// Unread: the part finds these objects when it needs them, and is not told of each change.
	Unread bool
}

// Deps is what a part is handed.
type Deps struct {
	Log    *slog.Logger
	Store  Store
	Hosts  Hosts
	Roster *peers.Roster
	// Adapters are on which hosts the adapters of VMs run.
	Adapters *adapters.Book
	// CatchUp returns when this controller has all that was written before the call. Fresh is the same for who reads:
	// it says why that may be old, "" where it is not.
	CatchUp func(context.Context) error
	Fresh   func(context.Context) string
	// Lease is for how long a host that has lost its controllers holds what it has, so that no other host gets it.
	Lease func() time.Duration
	// Look is how often a part looks whether another controller has left something undone.
	Look time.Duration
}

// Store is what a part may do with the store.
type Store interface {
	Get(store.Key) (store.Object, bool)
	List(store.Kind) []store.Object
	Write(context.Context, []store.Change) (int64, error)
	Sync(context.Context) error
	Claim(context.Context, store.ClaimRequest) (store.Port, error)
	Release(context.Context, store.ReleaseRequest) error
	Resize(ctx context.Context, group string, ports int, guard *store.Change) error
	RemovePorts(ctx context.Context, group string, force bool, guard *store.Change) error
}

// Hosts is what the controller knows of its hosts. The functions take the lock of the hosts: no hook that is called
// with it calls them.
type Hosts struct {
	// Of finds a host by its id, Named by its name; All are all of them, by name.
	Of    func(id string) (fanout.Host, bool)
	Named func(name string) (fanout.Host, bool)
	All   func() []fanout.Host
	// Ask asks the other controllers about hosts.
	Ask func(context.Context, *controllerv1.GetHostsHereRequest) *fanout.Answers
	// Defined is the definition that counts, DefinedFor that by which a host is handed its part: without the changes
	// that it is not to have yet.
	Defined    func() *inventory.Inventory
	DefinedFor func(id string) (*inventory.Inventory, error)
	// Serves reports whether the part of a host has a port group, and gives the port group as that host has it.
	Serves func(id, group string) (spec.PortGroup, bool, error)
	// Say logs what comes of what a host says, at a rate that is bounded for each host.
	Say func(id string, level slog.Level, text string, args ...any)
}

// Name is the name of the host with an id; the id itself for one that was removed.
func (h Hosts) Name(id string) string {
	if host, there := h.Of(id); there {
		return host.Name
	}
	return id
}
