package audit

import (
	"sync"
	"time"
)

const (
	// callersPart is the part of the room for changes that one caller's lines take: one of so many.
	callersPart = 16
	// partEvery is after what time a caller has the whole part again.
	partEvery = 30 * 24 * time.Hour
	// lineSize is what a call takes in the log, its beginning and its end, in bytes, beside its objects.
	lineSize = 600
	// mostCallers is how many callers are remembered.
	mostCallers = 4096
)

// parts are what callers have left of their parts of the room for changes. They are those since the log was opened.
type parts struct {
	most float64 // bytes

	mu sync.Mutex
	by map[caller]*part
}

// caller is who makes calls: a person however many tokens they have, or a token.
type caller struct{ issuer, who, token string }

type part struct {
	left float64
	at   time.Time
}

func newParts(b Bounds) *parts {
	return &parts{most: float64(b.File) * float64(b.Changes) / callersPart, by: map[caller]*part{}}
}

// take takes an entry from its caller's part; false: the part is used up. Users of the controller's socket, and the
// controller itself, have no bound: they could write into the files themselves.
func (p *parts) take(e Entry) bool {
	key := caller{e.Issuer, e.Who, ""}
	if e.Issuer == "" {
		if key = (caller{token: e.Token}); e.Token == "" {
			return true
		}
	}
	size := float64(lineSize)
	for _, o := range e.Objects {
		size += float64(len(o))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.by[key]
	if c == nil {
		p.makeRoom(e.At)
		c = &part{left: p.most, at: e.At}
		p.by[key] = c
	}
	c.left = min(p.most, c.left+p.most*float64(max(0, e.At.Sub(c.at)))/float64(partEvery))
	c.at = e.At
	if c.left < size {
		return false
	}
	c.left -= size
	return true
}

// makeRoom forgets the caller who has most of their part, where there are too many: it loses nothing, or the least.
func (p *parts) makeRoom(now time.Time) {
	if len(p.by) < mostCallers {
		return
	}
	var most caller
	best := -1.0
	for key, c := range p.by {
		if left := c.left + p.most*float64(now.Sub(c.at))/float64(partEvery); left > best {
			most, best = key, left
		}
	}
	delete(p.by, most)
}
