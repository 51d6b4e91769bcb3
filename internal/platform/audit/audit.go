package audit

import (
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"heddle/internal/host/ownfile"
)

// Result is what became of a call.
type Result string

// The results.
const (
	// Begun: nothing more is known, since the controller ended before the call did.
	Begun   Result = "begun"
	Done    Result = "done"
	Failed  Result = "failed"
	Refused Result = "refused"
)

// Entry is one call.
type Entry struct {
	// Number counts the entries of a controller; it has no gap but where entries were removed for age.
	Number int64     `json:"number"`
	At     time.Time `json:"at"`
	// Ended is when the call was answered.
	Ended time.Time `json:"ended,omitzero"`
	// Who is the name of a token, or the user at the controller's socket.
	Who string `json:"who,omitempty"`
	// Token is the token's id, which is no secret.
	Token string `json:"token,omitempty"`
	Role  string `json:"role,omitempty"`
	// Issuer is the identity provider that knows the person; "" for others.
	Issuer string `json:"issuer,omitempty"`
	// Groups are those of the caller, Grant what allowed the call.
	Groups []string `json:"groups,omitempty"`
	Grant  string   `json:"grant,omitempty"`
	// From is the address of the caller.
	From string `json:"from,omitempty"`
	// Call is what was asked for, such as ApplyDefinition.
	Call string `json:"call,omitempty"`
	// Objects are what it was about.
	Objects []string `json:"objects,omitempty"`
	Result  Result   `json:"result"`
	// Error says why it failed or was refused.
	Error string `json:"error,omitempty"`
	// Times is how many refusals the entry stands for, where that is more than one.
	Times int `json:"times,omitempty"`
	// After is the hash of the line before, of the first line of a file: the file before it may have been removed.
	After string `json:"after,omitempty"`
}

// Bounds of one entry, in bytes and in objects.
const (
	mostObjects = 64
	mostGroups  = 32
	longestText = 400
)

// bounded is the entry within the bounds.
func (e Entry) bounded() Entry {
	if n := len(e.Objects); n > mostObjects {
		e.Objects = append(append([]string(nil), e.Objects[:mostObjects]...), fmt.Sprintf("and %d more", n-mostObjects))
	}
	for i, o := range e.Objects {
		if len(o) > longestText {
			e.Objects = append([]string(nil), e.Objects...)
			e.Objects[i] = shorten(o)
		}
	}
	if n := len(e.Groups); n > mostGroups {
		e.Groups = append(append([]string(nil), e.Groups[:mostGroups]...), fmt.Sprintf("and %d more", n-mostGroups))
	}
	for i, g := range e.Groups {
		if len(g) > longestText {
			e.Groups = append([]string(nil), e.Groups...)
			e.Groups[i] = shorten(g)
		}
	}
	for _, text := range []*string{&e.Who, &e.Call, &e.Error, &e.Role, &e.Grant, &e.Issuer} {
		*text = shorten(*text)
	}
	return e
}

func shorten(text string) string {
	if len(text) <= longestText {
		return text
	}
	n := longestText
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}

// Bounds are those of the files.
type Bounds struct {
	// File is after how many bytes another file is begun.
	File int64
	// Changes, Refusals and Frequent are how many files there are at most of each. Refusals have files of their own, so
	// that nobody can push changes out by being refused, and so have the changes of callers who make more of them than
	// their part: nobody pushes out what others did by doing much.
	Changes, Refusals, Frequent int
}

// DefaultBounds are 192 MiB in all: about 480,000 changes.
func DefaultBounds() Bounds { return Bounds{File: 16 << 20, Changes: 8, Refusals: 2, Frequent: 2} }

// Log is the record of one controller. Its methods may be called by several goroutines.
type Log struct {
	now      func() time.Time
	changes  *series
	refusals *series
	frequent *lanes
	parts    *parts

	mu        sync.Mutex
	next      int64
	followers map[chan struct{}]bool
}

// Open opens the record in a directory, or begins it.
func Open(dir string, b Bounds, now func() time.Time) (*Log, error) {
	if err := ownfile.MakeDir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the directory of the audit log: %w", err)
	}
	l := &Log{now: now, followers: map[chan struct{}]bool{}, changes: newSeries(dir, "changes", b.File, b.Changes),
		refusals: newSeries(dir, "refusals", b.File, b.Refusals),
		frequent: newLanes(dir, b), parts: newParts(b)}
	if err := l.frequent.learn(); err != nil {
		return nil, fmt.Errorf("the audit log: %w", err)
	}
	for _, s := range l.all() {
		last, err := s.last()
		if err != nil {
			return nil, fmt.Errorf("the audit log: %w", err)
		}
		l.next = max(l.next, last)
		if s.chain, err = s.lastLink(); err != nil {
			return nil, fmt.Errorf("the audit log: %w", err)
		}
	}
	return l, nil
}

// Dir is the directory of the files.
func (l *Log) Dir() string { return l.changes.dir }

// all are the series, in the order of Series.
func (l *Log) all() []*series {
	return append([]*series{l.changes, l.refusals}, l.frequent.all()...)
}

// Close ends the record.
func (l *Log) Close() error {
	var err error
	for _, s := range l.all() {
		err = errors.Join(err, s.close())
	}
	return err
}

func (l *Log) number() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	return l.next
}

// Begin records that a call begins. When it returns without an error the entry is on disk; with one, nothing may be
// changed.
func (l *Log) Begin(e Entry) (*Call, error) {
	e.Number, e.At, e.Result = l.number(), l.now().UTC(), Begun
	e = e.bounded()
	c := &Call{log: l, to: l.changes, number: e.Number}
	c.by, c.bounded = callerOf(&e)
	if c.bounded && !l.parts.take(c.by, e.At, sizeOf(e)+leastEnd) {
		c.to, c.bounded = l.frequent.seriesOf(c.by), false
	}
	if err := c.to.append(e); err != nil {
		return nil, fmt.Errorf("the audit log can't be written, so that nothing is changed: %w", err)
	}
	l.tell()
	return c, nil
}

// Call is one that has begun.
type Call struct {
	log *Log
	// to has its beginning.
	to     *series
	number int64
	// by is who makes it; bounded: its lines are of the caller's part of the room for changes.
	by      caller
	bounded bool
}

// End records what became of it. Objects are added to those of the beginning.
func (c *Call) End(result Result, objects []string, why string) error {
	now := c.log.now().UTC()
	defer c.log.tell()
	e := Entry{Number: c.number, At: now, Objects: objects, Result: result, Error: why}.bounded()
	if c.bounded {
		c.log.parts.charge(c.by, sizeOf(e)-leastEnd)
	}
	return c.to.append(e)
}

// Refuse records a refusal.
func (l *Log) Refuse(e Entry) error {
	e.Number, e.At, e.Result = l.number(), l.now().UTC(), Refused
	defer l.tell()
	return l.refusals.append(e.bounded())
}
