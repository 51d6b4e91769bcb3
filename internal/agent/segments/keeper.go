package segments

import (
	"cmp"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"net/netip"
	"slices"
	"sync"
	"time"

	"heddle/internal/overlay"
	"heddle/internal/overlay/span"
)

// Options are what a keeper needs.
type Options struct {
	// Dir is where the file is.
	Dir string
	// Self is the host's id in its cluster; "" while it is in none.
	Self func() string
	// Changed is called, from any goroutine and without a lock, when Take has something.
	Changed func()
	Log     *slog.Logger
}

// Keeper is safe for concurrent use.
type Keeper struct {
	Options
	changed chan struct{} // holds one token when something may have to be said

	mu     sync.Mutex
	own    span.Own
	known  span.Replica
	wanted chan struct{} // closed while the host has segments
	open   bool          // it is
	heard  bool          // a controller has said all that it knows
	since  time.Time     // of heard
	again  map[span.VNI]bool
	asked  map[span.VNI]bool // all of these was asked for
	stale  bool              // the file is older than what is known
	blank  bool              // nothing was on disk, and no controller has said all since
	touched
}

// touched is what the kernel was not told yet.
type touched struct {
	places    map[placed]bool
	addresses map[overlay.Address]bool
	members   bool
}

func nothingTouched() touched {
	return touched{places: map[placed]bool{}, addresses: map[overlay.Address]bool{}}
}

// New makes a keeper of what is on disk. A file that can't be read is as none: the controllers say it again.
func New(o Options) *Keeper {
	k := &Keeper{Options: o, changed: make(chan struct{}, 1), wanted: make(chan struct{}), since: time.Now(),
		again: map[span.VNI]bool{}, asked: map[span.VNI]bool{}, touched: nothingTouched()}
	err := k.read()
	k.blank = err != nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		o.Log.Error("what was known of overlay segments cannot be read: it is unknown until a controller answers",
			"file", k.path(), "err", err)
	}
	return k
}

// Set says what the host has now: its endpoints, and what is behind its ports. The maps are the keeper's from here on.
func (k *Keeper) Set(endpoints []span.Endpoint, have map[span.VNI]map[span.Key]span.Claim) {
	k.mu.Lock()
	k.own.Set(endpoints, have)
	if want := k.own.Wanted(); want != k.open {
		if k.open = want; want {
			close(k.wanted)
		} else {
			k.wanted = make(chan struct{})
		}
	}
	k.mu.Unlock()
	k.poke()
}

// Noted is a claim beside those of Set.
type Noted struct {
	VNI   span.VNI
	Key   span.Key
	Claim span.Claim
	// Anew: it is a later claim than the one that was said before, even if no other host is known to have it.
	Anew bool
}

// Note says what has been found behind the host's ports since Set.
func (k *Keeper) Note(list []Noted) {
	self := k.Self()
	k.mu.Lock()
	for i := range list {
		n := &list[i]
		k.own.Note(n.VNI, n.Key, n.Claim, n.Anew || k.elsewhere(n.VNI, n.Key, self))
	}
	k.mu.Unlock()
	k.poke()
}

// elsewhere reports whether the controllers say that another host has what a key locates. The caller holds the lock.
func (k *Keeper) elsewhere(vni span.VNI, key span.Key, self string) bool {
	content := k.known.Content(vni)
	if content == nil {
		return false
	}
	at, ok := content.Places[key]
	return ok && at.Host != self || key.VLAN() != 0 && movedToOlder(content, key, self)
}

// Elsewhere reports whether the controllers say that another host has a MAC that this one has learned.
func (k *Keeper) Elsewhere(key overlay.Key) bool {
	self := k.Self()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.elsewhere(span.VNI(key.VNI), KeyOf(key), self)
}

func (k *Keeper) poke() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// touch notes what an update makes another. The caller holds the lock.
func (k *Keeper) touch(u *span.Update) {
	note := func(key span.Key) {
		if _, is := key.MAC(); is {
			k.places[placed{u.VNI, key}] = true
		} else if ip, is := key.Address(); is {
			k.addresses[overlay.Address{VNI: uint32(u.VNI), VLAN: key.VLAN(), IP: ip}] = true
		}
	}
	was := k.known.Content(u.VNI)
	if was != nil && (u.Whole || u.Gone) {
		for key := range was.Places {
			note(key)
		}
	}
	moved := map[string]bool{}
	for _, m := range u.Members {
		if was != nil && !slices.Equal(was.Members[m.ID].Endpoints, m.Endpoints) {
			moved[m.ID] = true
		}
	}
	if was != nil && len(moved) > 0 {
		for key, l := range was.Places {
			if moved[l.Host] {
				note(key)
			}
		}
	}
	for i := range u.Put {
		note(u.Put[i].Key)
	}
	for _, key := range u.Removed {
		note(key)
	}
	k.members = k.members || u.Whole || u.Gone || len(u.Members)+len(u.Left) > 0
}

// Change is what the kernel is to be told.
type Change struct {
	// Members: which endpoints there are, and in which segments, may be another.
	Members bool
	// Put are locations that are new or another; Removed those of which nothing is known any more, or that are on this
	// host.
	Put     []overlay.Location
	Removed []overlay.Key
	// Bound and Unbound are the same of who has which address.
	Bound   []overlay.Binding
	Unbound []overlay.Address
}

// Take is what has changed since the last call.
func (k *Keeper) Take() (c Change) {
	self := k.Self()
	k.mu.Lock()
	defer k.mu.Unlock()
	c.Members = k.members
	k.withInside()
	for at := range k.places {
		k.locate(&c, at, self)
	}
	k.takeBound(&c, self)
	k.touched = nothingTouched()
	return c
}

// Reach is what is known of other hosts' endpoints, for a switch with these segments.
func (k *Keeper) Reach(vnis []uint32) (r overlay.Reach) {
	self := k.Self()
	k.mu.Lock()
	defer k.mu.Unlock()
	at := map[netip.Addr]int{}
	for _, vni := range vnis {
		content := k.known.Content(span.VNI(vni))
		if content == nil {
			continue
		}
		one := overlay.Segment{VNI: vni}
		for _, m := range members(content) {
			if m.ID == self {
				continue
			}
			for _, e := range m.Endpoints {
				n, seen := at[e.Address]
				if !seen {
					n = len(r.Endpoints)
					at[e.Address] = n
					r.Endpoints = append(r.Endpoints, overlay.Endpoint{Address: e.Address, Host: m.Name})
				}
				r.Endpoints[n].Tell(int(min(e.MTU, math.MaxUint16)))
				if !e.Down {
					one.Members = append(one.Members, e.Address)
				}
			}
		}
		r.Segments = append(r.Segments, one)
	}
	slices.SortFunc(r.Endpoints, func(a, b overlay.Endpoint) int { return a.Address.Compare(b.Address) })
	return r
}

// members are the hosts of a segment, always in the same order.
func members(c *span.Content) []span.Host {
	return slices.SortedFunc(maps.Values(c.Members), func(a, b span.Host) int { return cmp.Compare(a.ID, b.ID) })
}

// All is everything that is known of where MACs are, for a kernel that was told nothing yet. What Take has to say
// stays.
func (k *Keeper) All() (c Change) {
	self := k.Self()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, vni := range k.known.Segments() {
		k.allBound(&c, vni, self)
		for key := range k.known.Content(vni).Places {
			if _, is := key.MAC(); is {
				k.locate(&c, placed{vni, key}, self)
			}
		}
	}
	c.Removed = nil
	return c
}
