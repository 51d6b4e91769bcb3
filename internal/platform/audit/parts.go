package audit

import (
	"encoding/json"
	"sync"
	"time"
)

const (
	// callersPart is the part of the room for changes that one caller's lines take: one of so many.
	callersPart = 16
	// partEvery is after what time a caller has the whole part again.
	partEvery = 30 * 24 * time.Hour
	// leastEnd is what the end of a call takes at least, in bytes: it is taken when the call begins.
	leastEnd = 200
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

// callerOf is who makes the call of an entry; false for those who have no bound: users of the controller's socket, and
// the controller itself, could write into the files themselves.
func callerOf(e *Entry) (caller, bool) {
	if e.Issuer != "" {
		return caller{issuer: e.Issuer, who: e.Who}, true
	}
	return caller{token: e.Token}, e.Token != ""
}

// sizeOf is what the line of an entry takes in its file, in bytes.
func sizeOf(e Entry) float64 {
	line, err := json.Marshal(e)
	if err != nil { // never: an entry is plain data
		return 0
	}
	return float64(len(line) + longestChain)
}

// take takes so many bytes from a caller's part; false: the part is used up, and nothing is taken.
func (p *parts) take(key caller, now time.Time, size float64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.by[key]
	if c == nil {
		p.makeRoom(now)
		c = &part{left: p.most, at: now}
		p.by[key] = c
	}
	c.left = min(p.most, c.left+p.most*float64(max(0, now.Sub(c.at)))/float64(partEvery))
	c.at = now
	if c.left < size {
		return false
	}
	c.left -= size
	return true
}

// charge takes what the end of a call took beyond what was taken at its beginning. The part may be in debt then.
func (p *parts) charge(key caller, size float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.by[key]; c != nil {
		c.left -= max(0, size)
	}
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
