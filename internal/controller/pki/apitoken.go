package pki

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"heddle/internal/identity"
)

// APIRecord is what the store keeps of a token of a person or a tool.
type APIRecord struct {
	ID identity.TokenID `json:"id"`
	// Digest is of the secret, which nobody but the token's owner has.
	Digest []byte `json:"digest"`
	// Name is whose it is, for people and for the audit log.
	Name string        `json:"name"`
	Role identity.Role `json:"role"`
	// Look allows captures and traces, which show what guests send; an admin may do so anyway.
	Look    bool      `json:"look,omitempty"`
	Made    time.Time `json:"made"`
	Expires time.Time `json:"expires"`
	// By is who made it.
	By string `json:"by"`

	unknown map[string]json.RawMessage
}

// DecodeAPIRecord reads a record as the store keeps it.
func DecodeAPIRecord(text []byte) (*APIRecord, error) {
	r := &APIRecord{}
	var err error
	if r.unknown, err = decodeKeeping(text, r); err != nil {
		return nil, fmt.Errorf("the record of a token can't be read: %w", err)
	}
	return r, nil
}

// Encode is the record as the store keeps it, with what a newer controller wrote into it.
func (r *APIRecord) Encode() ([]byte, error) { return encodeKeeping(r, r.unknown) }

// maxName is the length of the longest name of a person or a tool.
const maxName = 64

// APITerms are a token's.
type APITerms struct {
	Name string
	Role identity.Role
	Look bool
	Life time.Duration
	By   string
}

// NewAPIToken makes a token for a person or a tool, and what is stored of it.
func NewAPIToken(terms APITerms, now time.Time) (identity.APIToken, *APIRecord, error) {
	if terms.Life <= 0 {
		return identity.APIToken{}, nil, errors.New("a token needs a time after which it expires")
	}
	if terms.Name == "" || len(terms.Name) > maxName {
		return identity.APIToken{}, nil, fmt.Errorf("a token needs a name of at most %d bytes, which says whose it is",
			maxName)
	}
	if !terms.Role.Valid() {
		return identity.APIToken{}, nil, fmt.Errorf("there is no %v: a token is of a viewer, operator or admin",
			terms.Role)
	}
	t := identity.NewAPIToken()
	d := t.Digest()
	return t, &APIRecord{ID: t.ID, Digest: d[:], Name: terms.Name, Role: terms.Role, Look: terms.Look, Made: now,
		Expires: now.Add(terms.Life), By: terms.By}, nil
}

// Check makes sure that a token is the one that the record is of, and counts now. r is nil for a token that the store
// has not.
func (r *APIRecord) Check(t identity.APIToken, now time.Time) error {
	got := t.Digest()
	var want []byte
	if r != nil && r.ID == t.ID {
		want = r.Digest
	}
	if subtle.ConstantTimeCompare(got[:], want) != 1 {
		return &identity.TokenError{Fault: identity.Unknown, ID: t.ID}
	}
	if now.After(r.Expires) {
		return &identity.TokenError{Fault: identity.Expired, ID: t.ID, Err: fmt.Errorf("on %s", stamp(r.Expires))}
	}
	return nil
}

// May returns an error if the token does not have the role.
func (r *APIRecord) May(need identity.Role) error {
	if r.Role.Covers(need) {
		return nil
	}
	return r.lacks(fmt.Sprintf("it has the role %s, and this needs %s", r.Role, need))
}

// MayLook returns an error if the token does not allow to capture and trace frames.
func (r *APIRecord) MayLook() error {
	if r.Look || r.Role == identity.Admin {
		return nil
	}
	return r.lacks("captures and traces show what guests send, and it does not say that it allows them")
}

func (r *APIRecord) lacks(why string) error {
	return &identity.TokenError{Fault: identity.NotAllowed, ID: r.ID, Err: errors.New(why)}
}
