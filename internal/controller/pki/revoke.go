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

// Revocations are the certificates and the hosts that count no more, whatever their certificates say. The list is not
// changed in place.
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

// Revoke is the list with a host or controller.
func (r *Revocations) Revoke(n identity.Name, e Revocation) *Revocations {
	next := *r
	next.Names = with(r.Names, n.String(), e)
	return &next
}

// RevokeCertificate is the list with one certificate.
func (r *Revocations) RevokeCertificate(serial string, e Revocation) *Revocations {
	next := *r
	next.Serials = with(r.Serials, serial, e)
	return &next
}

func with(m map[string]Revocation, key string, e Revocation) map[string]Revocation {
	next := maps.Clone(m)
	if next == nil {
		next = map[string]Revocation{}
	}
	// Who revokes twice does not move the time of the first.
	if _, ok := next[key]; !ok {
		next[key] = e
	}
	return next
}

// Allow is the list without a host or controller. Certificates that were revoked one by one stay revoked.
func (r *Revocations) Allow(n identity.Name) *Revocations {
	next := *r
	next.Names = maps.Clone(r.Names)
	delete(next.Names, n.String())
	return &next
}

// Prune is the list without entries that no certificate can need any more; r itself if there are none.
func (r *Revocations) Prune(now time.Time) *Revocations {
	next := *r
	next.Names, next.Serials = maps.Clone(r.Names), maps.Clone(r.Serials)
	over := func(_ string, e Revocation) bool { return !e.Until.IsZero() && now.After(e.Until) }
	maps.DeleteFunc(next.Names, over)
	maps.DeleteFunc(next.Serials, over)
	if len(next.Names) == len(r.Names) && len(next.Serials) == len(r.Serials) {
		return r
	}
	return &next
}

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
	why := fmt.Sprintf("it was revoked on %s by %s", stamp(e.At), e.By)
	if e.Why != "" {
		why += " (" + e.Why + ")"
	}
	return &identity.PeerError{Fault: identity.Revoked, Name: p.Name, Err: errors.New(why)}
}
