package access

import (
	"net/netip"
	"sync"

	"connectrpc.com/connect/v2"

	"heddle/internal/platform/access/roles"
)

// shares are how many places there are for something.
type shares struct {
	// each is how many one caller may have at a time, with whatever tokens; address how many those at one address.
	each, address int
	// all is how many there are in all; reserved are further ones for who manages the cluster: however many others ask,
	// there is somebody who can withdraw their tokens.
	all, reserved int
}

// rooms are the places of a controller. What one place can hold is bounded, so that these bound the memory.
type rooms struct {
	// receiving has requests of which the body has not come: smallBody bytes each.
	receiving *places
	// answering has requests that are answered once, following those that are answered by a stream, which may last for
	// days: a page with an overview of 256 hosts has one for each of them.
	answering, following *places
	// larges has requests with a body of more than smallBody bytes, those that wait for memory included.
	larges *places
	// opening and open have requests without a token, which anybody may send, while they come and while they are
	// answered: they take no room from those with one.
	opening, open *places
	// memory is for large bodies, partMemory for those of who has a part of the cluster, adminMemory for those of who
	// manages it.
	memory, partMemory, adminMemory memory
}

func newRooms() rooms {
	return rooms{
		receiving:   newPlaces(shares{each: 64, address: 128, all: 448, reserved: 64}),
		answering:   newPlaces(shares{each: 64, address: 128, all: 224, reserved: 32}),
		following:   newPlaces(shares{each: 256, address: 512, all: 960, reserved: 64}),
		larges:      newPlaces(shares{each: 2, address: 16, all: 64, reserved: 16}),
		opening:     newPlaces(shares{address: 8, all: 128}),
		open:        newPlaces(shares{address: 8, all: 32}),
		memory:      newMemory(largeSum),
		partMemory:  newMemory(partSum),
		adminMemory: newMemory(largeSum),
	}
}

// places counts who has how many of something.
type places struct {
	shares

	mu             sync.Mutex
	others, admins int
	by             map[string]int
	at             map[netip.Addr]int
}

func newPlaces(s shares) *places {
	return &places{shares: s, by: map[string]int{}, at: map[netip.Addr]int{}}
}

// take takes a place for a caller, until leave is called; the error says why there is none.
func (p *places) take(c Caller) (leave func(), err *connect.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key, from, admin := c.key(), NetworkOf(c.From), c.manages()
	switch {
	case key != "" && p.by[key] >= p.each:
		return nil, full("you have as many requests under way as one caller may have at a time")
	case admin && p.others+p.admins >= p.all+p.reserved, !admin && p.others >= p.all:
		return nil, full("the controller answers as many requests as it can at a time")
	case !admin && p.at[from] >= p.address:
		return nil, full("those at your address have as many requests under way as they may have at a time")
	}
	if admin {
		p.admins++
	} else {
		p.others++
		p.at[from]++
	}
	p.by[key]++
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if admin {
			p.admins--
		} else {
			p.others--
			less(p.at, from)
		}
		less(p.by, key)
	}), nil
}

// less counts one of them no more.
func less[K comparable](of map[K]int, key K) {
	if of[key]--; of[key] <= 0 {
		delete(of, key)
	}
}

func full(why string) *connect.Error {
	return connect.NewError(connect.CodeResourceExhausted, why+": try again")
}

// key is what a caller is counted by, who may have several tokens; "" for who has none.
func (c Caller) key() string {
	switch {
	case c.Token == nil:
		return ""
	case c.Token.Person != "":
		return "person " + c.Token.Issuer + " " + c.Token.Person
	}
	return "token " + string(c.Token.ID)
}

// manages reports whether a caller manages the cluster.
func (c Caller) manages() bool {
	return c.Access != nil && c.Access.Has(roles.Manage, roles.Cluster())
}
