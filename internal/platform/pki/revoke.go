package pki

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"heddle/internal/identity"
)

// revocationsFormat is the version of the list of what is revoked.
const revocationsFormat = 1

// Revocations are the certificates and the hosts that count no more, whatever their certificates say, as the version
// before this one keeps them: all in one list. It is read for as long as it is there, and written while a controller of
// that version is in the cluster. It is not changed in place.
type Revocations struct {
	Format int `json:"format"`
	// Serials are single certificates, such as the one before of a host that was installed anew.
	Serials map[string]Revocation `json:"serials"`
	// Names are hosts and controllers with all their certificates, as heddle://CLUSTER/host/ID.
	Names map[string]Revocation `json:"names"`

	unknown map[string]json.RawMessage
}

// Revocation is one entry.
type Revocation struct {
	At  time.Time `json:"at"`
	By  string    `json:"by"`
	Why string    `json:"why,omitempty"`
	// Unconfirmed: it is not known whether it was revoked, as the state was restored from a snapshot; Name is whose it
	// is.
	Unconfirmed bool   `json:"unconfirmed,omitempty"`
	Name        string `json:"name,omitempty"`
	// Until is when nothing that it is about can count any more, so that the entry may go; zero is never.
	Until time.Time `json:"until,omitzero"`
}

// DecodeRevocations reads a list as the store keeps it; nothing at all is the empty list.
func DecodeRevocations(text []byte) (*Revocations, error) {
	if len(text) == 0 {
		return &Revocations{Format: revocationsFormat}, nil
	}
	r := &Revocations{}
	var err error
	if r.unknown, err = decodeKeeping(text, r); err != nil {
		return nil, fmt.Errorf("the list of what is revoked can't be read: %w", err)
	}
	// A controller that can't tell what is revoked may not go on as if nothing were.
	if r.Format != revocationsFormat {
		return nil, fmt.Errorf("the list of what is revoked is of format %d, and this controller knows %d: upgrade it",
			r.Format, revocationsFormat)
	}
	return r, nil
}

// Encode is the list as the store keeps it.
func (r *Revocations) Encode() ([]byte, error) { return encodeKeeping(r, r.unknown) }

// With is the list with these entries, and without those of names that count again. What it has stays as it is.
func (r *Revocations) With(names, serials map[string]Revocation, again []string) *Revocations {
	next := *r
	next.Names, next.Serials = added(r.Names, names), added(r.Serials, serials)
	for _, name := range again {
		delete(next.Names, name)
	}
	return &next
}

// added is a list with more entries.
func added(list, more map[string]Revocation) map[string]Revocation {
	next := maps.Clone(list)
	if next == nil {
		next = map[string]Revocation{}
	}
	for key, e := range more {
		if _, there := next[key]; !there { // who revokes twice does not move the time of the first
			next[key] = e
		}
	}
	return next
}

// Pruned is the list without entries that no certificate can need any more.
func (r *Revocations) Pruned(now time.Time) *Revocations {
	next := r.With(nil, nil, nil)
	over := func(_ string, e Revocation) bool { return e.Over(now) }
	maps.DeleteFunc(next.Names, over)
	maps.DeleteFunc(next.Serials, over)
	return next
}

// Over reports whether no certificate can need the list any more.
func (r *Revocations) Over(now time.Time) bool {
	for _, list := range []map[string]Revocation{r.Serials, r.Names} {
		for _, e := range list {
			if !e.Over(now) {
				return false
			}
		}
	}
	return true
}

// RevokedAs is how the store knows a host or a controller that is revoked.
func RevokedAs(n identity.Name) string { return n.Kind.String() + "/" + n.ID }

// UntilOf is when an entry about a certificate may go: when it could not even be renewed.
func UntilOf(notAfter time.Time) time.Time { return notAfter.Add(Grace) }

// Check returns an error if the peer was revoked.
func (r *Revocations) Check(p *identity.Peer) error {
	e, ok := r.Serials[p.Serial]
	if !ok {
		e, ok = r.Names[p.Name.String()]
	}
	if !ok {
		return nil
	}
	return e.refuses(p)
}

// DecodeRevocation reads what the store keeps of one host or controller that is revoked.
func DecodeRevocation(text []byte) (*Revocation, error) {
	e := &Revocation{}
	if err := json.Unmarshal(text, e); err != nil {
		return nil, fmt.Errorf("what the store has of a revocation can't be read: %w", err)
	}
	return e, nil
}

// Over reports whether no certificate can need the entry any more.
func (e *Revocation) Over(now time.Time) bool { return !e.Until.IsZero() && now.After(e.Until) }

// refuses is the error of a peer that the entry is about.
func (e *Revocation) refuses(p *identity.Peer) error {
	if e.Unconfirmed {
		return &identity.PeerError{Fault: identity.NotConfirmed, Name: p.Name, Err: fmt.Errorf("the cluster's state "+
			"was restored on %s from a snapshot, which does not say what was taken out after it was made; an admin "+
			"confirms that %s still counts (heddle-controller confirm), and it is back by itself", stamp(e.At), e.Name)}
	}
	why := fmt.Sprintf("it was revoked on %s by %s", stamp(e.At), e.By)
	if e.Why != "" {
		why += " (" + e.Why + ")"
	}
	return &identity.PeerError{Fault: identity.Revoked, Name: p.Name, Err: errors.New(why)}
}
