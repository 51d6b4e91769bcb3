package rpc

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/adapters"
	"heddle/internal/controller/addresses"
	"heddle/internal/controller/definition"
	"heddle/internal/controller/hostwords"
	"heddle/internal/controller/inventory"
	"heddle/internal/controller/part"
	"heddle/internal/controller/together"
	"heddle/internal/identity"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
	"heddle/internal/slice/fields"
)

// hostDoc is what the store keeps of a host that joined, beside its id.
type hostDoc struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
	Joined time.Time         `json:"joined"`
	// Serial is that of the newest certificate, Expires when it ends.
	Serial  string    `json:"serial"`
	Expires time.Time `json:"expires"`
	// Made is when the certificate MadeOf was made. A controller of an earlier version writes another serial beside it.
	Made   time.Time `json:"made,omitzero"`
	MadeOf string    `json:"madeOf,omitempty"`
	// Issuer is the root that signed it, Trusts are those that the host was handed with it.
	Issuer identity.Fingerprint   `json:"issuer,omitzero"`
	Trusts []identity.Fingerprint `json:"trusts,omitempty"`
	// Former are those before that may count still, Withdrawn says which count no more; nil for none.
	Former    []formerCert `json:"former,omitempty"`
	Withdrawn *withdrawal  `json:"withdrawn,omitempty"`
	// Retry is the version that somebody wants the host to try again; nil for none.
	Retry *retry `json:"retry,omitempty"`
}

// fleet is the definition and the hosts, as this controller knows them. Everything in it is in the store as well, but
// for what the hosts report.
type fleet struct {
	log   *slog.Logger
	epoch int64

	mu        sync.Mutex
	inventory *inventory.Inventory
	base      *slice.Set // the definition's objects; the inventory has those of a change that is not folded, too
	staged    definition.Staging
	revision  int64            // of the last change of the definition
	loaded    bool             // the store has been read
	read      int64            // up to this revision of the store
	hosts     map[string]*host // by id
	names     map[string]*host
	sets      map[slice.Hash]*slice.Set // handed out lately
	order     []slice.Hash              // of sets, the oldest first
	updates   map[updateKey]*controllerv1.SliceUpdate
	fitters   map[string]*fitter // by what agents say that they know
	changed   chan struct{}      // closed and replaced when something changes that somebody may wait for
	// roster counts the changes of the list of controllers.
	roster int64
	// adapters are on which hosts adapters of VMs run.
	adapters *adapters.Book
	// together is what is known of changes that hosts make together.
	together *together.Hub
	// addresses are those that host ports have from pools.
	addresses *addresses.Book
	rolling   rolling
	// parts take part in the conversations with hosts, those of capabilities among them.
	parts        part.Table
	capabilities capabilities
	// takers take in what became of the store's objects, by their kinds.
	takers map[store.Kind]taker
}

// host is one that joined.
type host struct {
	id  string
	doc hostDoc
	// part is what the host is to have by the inventory of; both nil until somebody asks.
	part *slice.Set
	of   *inventory.Inventory
	conn *conn // nil where it is not connected to this controller
	// What it said last.
	agent   string
	address string
	report  *report
	since   time.Time // of the connection, or of its end
	active  version
	failed  version // the one that it could not activate
	why     []string
	// given are the overlay segments of its part.
	given given
	// fitter says what its agent knows, lacks what of its part it does not; nil until it has said so.
	fitter *fitter
	lacks  []fields.Lack
	// without are host ports that its part does not have, with why.
	without []string
	// reverted is what it went back from; nil for nothing.
	reverted *controllerv1.RevertedSlice
	// switches are how its distributed switches are, as it said last.
	switches []*controllerv1.HostSwitch
	// pace bounds how often it reports, talk how many lines of the log are about what it says.
	pace pace
	talk *hostwords.Talk
}

// say has a line about what the host says written in the log, at a bounded rate.
func (h *host) say(log *slog.Logger, level slog.Level, text string, args ...any) {
	h.talk.Say(log, level, text, args...)
}

// updateKey says what an update is of: one that is the whole content has no from, as has a difference to nothing.
type updateKey struct {
	whole    bool
	from, to slice.Hash
}

// version is one of the definition, as a host has it.
type version struct {
	revision int64
	hash     slice.Hash
	known    bool
}

// mostSets is how many contents are remembered, so that a host that comes back is sent the difference.
const mostSets = 512

func newFleet(log *slog.Logger, epoch int64) *fleet {
	f := &fleet{log: log, epoch: epoch, changed: make(chan struct{}), roster: 1, addresses: addresses.New(),
		together: together.NewHub(log)}
	f.adapters = adapters.New(adapters.Options{Log: log, Linger: lingers * shareTime})
	f.have(nil, f.adapters, f.together)
	f.takers = takersOf(f)
	f.reset()
	return f
}

// have gives a fleet its capabilities, and the parts of the core.
func (f *fleet) have(list capabilities, core ...any) {
	f.capabilities, f.parts = list, part.Of(append(list.parts(), core...)...)
	if b := list.bindings(); b != nil {
		f.adapters.Bindings = b
	}
}

func (f *fleet) reset() {
	f.base = &slice.Set{}
	f.inventory, _ = inventory.New(f.base) // of nothing, which is no fault
	f.hosts, f.names = map[string]*host{}, map[string]*host{}
	f.sets, f.order = map[slice.Hash]*slice.Set{}, nil
	f.updates = map[updateKey]*controllerv1.SliceUpdate{}
	f.fitters = map[string]*fitter{}
	f.addresses.Reset()
	f.rolling = newRolling()
}

// define makes the objects the definition. One that cannot be read leaves the one before.
func (f *fleet) define(objects *slice.Set, revision int64) {
	next, err := inventory.New(objects)
	if err != nil {
		f.log.Error("the definition in the store cannot be read; the hosts keep the one before", "revision", revision,
			"err", err)
		return
	}
	f.inventory, f.revision = next, revision
	clear(f.updates)
	clear(f.rolling.without)
	f.parts.DefinitionChanged()
	for _, h := range f.hosts {
		if h.conn != nil && !f.current(h) {
			h.conn.poke()
		}
	}
}

// current reports whether a host that is connected has been sent what it is to have: its connection sleeps on. The
// caller holds the lock.
func (f *fleet) current(h *host) bool {
	set, err := f.target(h)
	return err == nil && h.conn.sent != nil && h.conn.sent.known && h.conn.sent.hash == set.Hash()
}

// joined takes in a host of the store.
func (f *fleet) joined(o *store.Object) {
	var doc hostDoc
	if err := json.Unmarshal(o.Doc, &doc); err != nil {
		f.log.Error("a host in the store cannot be read", "host", o.Name, "err", err)
		return
	}
	h := f.hosts[o.ID]
	if h == nil {
		h = &host{id: o.ID, since: time.Now(), pace: newPace(), talk: hostwords.NewTalk()}
		f.hosts[o.ID] = h
	}
	if other := f.names[doc.Name]; other != nil && other != h {
		f.drop(other) // which had the name before
	}
	if h.doc.Name != doc.Name {
		delete(f.names, h.doc.Name)
	}
	f.names[doc.Name] = h
	h.doc = doc
	contents{f}.renew(h)
	f.parts.Joined(h.id, doc.Name)
}

// removed forgets the host of that name.
func (f *fleet) removed(name string) {
	if h := f.names[name]; h != nil {
		f.drop(h)
	}
}

func (f *fleet) drop(h *host) {
	delete(f.hosts, h.id)
	if f.names[h.doc.Name] == h {
		delete(f.names, h.doc.Name)
	}
	if h.conn != nil {
		h.conn.end(fmt.Errorf("host %s was taken out of the cluster", h.doc.Name))
	}
	f.parts.Remove(h.id)
}

// pokeAll wakes all connections. The caller holds the lock.
func (f *fleet) pokeAll() {
	for _, h := range f.hosts {
		if h.conn != nil {
			h.conn.poke()
		}
	}
}

// wake wakes who waits for a change. The caller holds the lock.
func (f *fleet) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// target is what a host is to have. The caller holds the lock.
func (f *fleet) target(h *host) (*slice.Set, error) {
	if h.of == f.inventory {
		return h.part, nil
	}
	fits, without, err := contents{f}.sliceOf(f.inventory, h, f.addresses.Of(h.doc.Name))
	if err != nil {
		return nil, err
	}
	h.part, h.of, h.lacks, h.without = fits.set, f.inventory, fits.lacks, without
	contents{f}.remember(fits.set)
	return fits.set, nil
}

// update is what makes one content another; was is nil for one that is not known. Hosts that need the same share it.
// The caller holds the lock.
func (f *fleet) update(was, to *slice.Set) *controllerv1.SliceUpdate {
	whole := was == nil
	if whole {
		was = &slice.Set{}
	}
	if own, shared := to.Parts(); own.Len() > 0 {
		return contents{f}.ownUpdate(was, own, shared, to, whole)
	}
	from := was.Hash()
	key := updateKey{whole, from, to.Hash()}
	if u, ok := f.updates[key]; ok {
		return u
	}
	hash := to.Hash()
	u := &controllerv1.SliceUpdate{Whole: whole,
		Version: &controllerv1.SliceVersion{Epoch: f.epoch, Revision: f.revision, Hash: hash[:]}}
	if !whole {
		u.From = from[:]
	}
	addChange(u, slice.Between(was, to))
	f.updates[key] = u
	return u
}

// state is how a host follows the definition, and what stands in the way. The caller holds the lock.
func (f *fleet) state(h *host) (controllerv1.HostState, []string) {
	set, err := f.target(h)
	down, maintained := h.isolated()
	switch {
	case h.conn == nil:
		return controllerv1.HostState_HOST_STATE_DISCONNECTED, nil
	case err != nil:
		return controllerv1.HostState_HOST_STATE_OUT_OF_SYNC, []string{err.Error()}
	case h.active.known && h.active.hash == set.Hash() && len(down) > 0:
		return controllerv1.HostState_HOST_STATE_DOWN, slices.Concat(down, h.problems(), maintained)
	case h.active.known && h.active.hash == set.Hash() && len(h.problems())+len(maintained) > 0:
		return controllerv1.HostState_HOST_STATE_WARNING, append(h.problems(), maintained...)
	case h.active.known && h.active.hash == set.Hash():
		return controllerv1.HostState_HOST_STATE_UP, nil
	case h.wentBackFrom(set) && !h.mayTryAgain():
		return controllerv1.HostState_HOST_STATE_REVERTED, append([]string{h.whyReverted()}, down...)
	case h.failed.known && h.failed.hash == set.Hash():
		return controllerv1.HostState_HOST_STATE_OUT_OF_SYNC, slices.Concat(h.why, down)
	}
	return controllerv1.HostState_HOST_STATE_PENDING, down
}
