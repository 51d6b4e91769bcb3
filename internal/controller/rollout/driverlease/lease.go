package driverlease

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"heddle/internal/platform/store"
)

// Key is where the lease is in the store.
func Key() store.Key { return store.Key{Kind: "rolloutDriver", Name: "current"} }

// doc says who drives.
type doc struct {
	// Controller is its id, Name its name.
	Controller string    `json:"controller"`
	Name       string    `json:"name"`
	At         time.Time `json:"at"`
}

// Usual is for how long a lease counts, unless a test says otherwise. It is renewed Parts times in it.
const (
	Usual = 6 * time.Second
	Parts = 4
)

// Store is where the lease is kept.
type Store interface {
	Get(store.Key) (store.Object, bool)
	Write(context.Context, []store.Change) (int64, error)
}

// Lease is the lease as one controller sees it. It is not safe for several goroutines.
type Lease struct {
	Store Store
	Log   *slog.Logger
	// ID and Name are those of this controller.
	ID, Name string
	// Time is for how long the lease counts.
	Time time.Duration

	mine int64 // its version, where it is this controller's
	seen int64
	at   time.Time // when that version was seen first
}

// Hold takes the lease, or renews it. held is false while it is another one's.
func (l *Lease) Hold(ctx context.Context) (held bool, err error) {
	now, ok := l.Store.Get(Key())
	if ok && now.Version != l.mine {
		if now.Version != l.seen {
			l.seen, l.at = now.Version, time.Now()
		}
		if time.Since(l.at) < l.Time {
			return false, nil
		}
	}
	text, err := json.Marshal(doc{Controller: l.ID, Name: l.Name, At: time.Now().UTC()})
	if err != nil {
		return false, err
	}
	version, err := l.Store.Write(ctx, []store.Change{{Key: Key(), Doc: text, IfVersion: now.Version}})
	var conflict *store.Conflict
	if errors.As(err, &conflict) {
		l.mine = 0
		return false, nil
	}
	if err == nil {
		l.mine = version
	}
	return err == nil, err
}

// Another reports whether another controller was seen to hold the lease lately.
func (l *Lease) Another() bool { return time.Since(l.at) < l.Time }

// Drop gives the lease up, so that nobody waits for its end.
func (l *Lease) Drop() {
	if l.mine == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := l.Store.Write(ctx, []store.Change{{Key: Key(), Delete: true, IfVersion: l.mine}})
	if l.mine = 0; err != nil {
		l.Log.Debug("the lease on driving rollouts ends by itself", "err", err)
	}
}

// Holder is the name of who holds the lease; "" for nobody.
func Holder(s Store) string {
	o, ok := s.Get(Key())
	var d doc
	if !ok || json.Unmarshal(o.Doc, &d) != nil {
		return ""
	}
	return d.Name
}
