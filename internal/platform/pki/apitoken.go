package pki

import (
	"cmp"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"heddle/internal/identity"
	"heddle/internal/platform/access/roles"
)

// APIRecord is what the store keeps of a token of a person or a tool.
type APIRecord struct {
	ID identity.TokenID `json:"id"`
	// Digest is of the secret, which nobody but the token's owner has. The store has none of a token that waits.
	Digest []byte `json:"digest"`
	// Waiting is the digest of a token that nobody has confirmed since a restore. A controller of the version before
	// does not know this field, and refuses a token without a digest.
	Waiting []byte `json:"waiting,omitempty"`
	// Name is whose it is, for people and for the audit log.
	Name string `json:"name"`
	// Role for the whole cluster is that of tokens that an earlier controller knows as well: viewer, operator or admin;
	// "" for all others. Such a controller refuses all to a token without.
	Role roles.Role `json:"role,omitempty"`
	// Look allows captures and traces, which show what guests send; an admin may do so anyway.
	Look bool `json:"look,omitempty"`
	// Grants are what the token allows besides, each a role for a part of the cluster.
	Grants []roles.Grant `json:"grants,omitempty"`
	// Person is who signed in by an identity provider and got the token for it, "" for another token; Groups are those
	// that the provider named.
	Person string   `json:"person,omitempty"`
	Groups []string `json:"groups,omitempty"`
	// Issuer is that provider.
	Issuer  string    `json:"issuer,omitempty"`
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
	if r.Role != "" && !r.Role.Valid() {
		return nil, fmt.Errorf("the record of a token can't be read: %w", r.Role.Known())
	}
	if len(r.Waiting) > 0 {
		r.Digest = r.Waiting
	}
	return r, nil
}

// Encode is the record as the store keeps it, with what a newer controller wrote into it.
func (r *APIRecord) Encode() ([]byte, error) {
	kept := *r
	if len(r.Waiting) > 0 {
		kept.Digest = nil
	}
	return encodeKeeping(&kept, r.unknown)
}

// Wait has a token count for nobody until it is confirmed, also at a controller of the version before; Confirm has it
// count again.
func (r *APIRecord) Wait()    { r.Waiting = r.Digest }
func (r *APIRecord) Confirm() { r.Waiting = nil }

// maxName is the length of the longest name of a person or a tool.
const maxName = 64

// APITerms are a token's.
type APITerms struct {
	Name string
	Role roles.Role
	// Scopes are the parts of the cluster that the role is for; none for all of it.
	Scopes []roles.Scope
	// Look: the token allows captures and traces there.
	Look bool
	Life time.Duration
	By   string
}

// mostScopes is how many parts of the cluster a token may name.
const mostScopes = 64

// NewAPIToken makes a token for a person or a tool, and what is stored of it.
func NewAPIToken(terms APITerms, now time.Time) (identity.APIToken, *APIRecord, error) {
	if terms.Life <= 0 {
		return identity.APIToken{}, nil, errors.New("a token needs a time after which it expires")
	}
	if terms.Name == "" || len(terms.Name) > maxName {
		return identity.APIToken{}, nil, fmt.Errorf("a token needs a name of at most %d bytes, which says whose it is",
			maxName)
	}
	if err := terms.check(); err != nil {
		return identity.APIToken{}, nil, err
	}
	t := identity.NewAPIToken()
	d := t.Digest()
	r := &APIRecord{ID: t.ID, Digest: d[:], Name: terms.Name, Made: now, Expires: now.Add(terms.Life), By: terms.By}
	r.grant(terms)
	return t, r, nil
}

// NewSignIn makes a token for a person who signed in, and what is stored of it. By itself it allows nothing: the person
// may do what is granted to them and to their groups.
func NewSignIn(person, issuer string, groups []string, life time.Duration, now time.Time) (identity.APIToken,
	*APIRecord) {
	t := identity.NewAPIToken()
	d := t.Digest()
	return t, &APIRecord{ID: t.ID, Digest: d[:], Name: person, Person: person, Issuer: issuer, Groups: groups,
		Made: now, Expires: now.Add(life), By: "sign-in"}
}

func (t *APITerms) check() error {
	if err := t.Role.Known(); err != nil {
		return err
	}
	if len(t.Scopes) > mostScopes {
		return fmt.Errorf("a token is for at most %d switches and port groups: make a group, and grant it the role",
			mostScopes)
	}
	for _, s := range t.Scopes {
		if err := s.Check(); err != nil {
			return err
		}
	}
	return nil
}

// grant writes down what the token allows.
func (r *APIRecord) grant(terms APITerms) {
	early := terms.Role == roles.Viewer || terms.Role == roles.Operator || terms.Role == roles.Admin
	if early && len(terms.Scopes) == 0 {
		r.Role, r.Look = terms.Role, terms.Look
		return
	}
	scopes := terms.Scopes
	if len(scopes) == 0 {
		scopes = []roles.Scope{roles.Cluster()}
	}
	for _, s := range scopes {
		r.Grants = append(r.Grants, roles.Grant{Role: terms.Role, Scope: s})
		if terms.Look && !terms.Role.Has(roles.Capture) {
			r.Grants = append(r.Grants, roles.Grant{Role: roles.Captures, Scope: s})
		}
	}
}

// Granted is what the token itself allows.
func (r *APIRecord) Granted() (list []roles.Grant) {
	who := roles.Who{Kind: roles.Token, Name: string(r.ID)}
	if r.Role != "" {
		list = append(list, roles.Grant{Who: who, Role: r.Role})
	}
	if r.Look && !r.Role.Has(roles.Capture) {
		list = append(list, roles.Grant{Who: who, Role: roles.Captures})
	}
	for _, g := range r.Grants {
		g.Who = who
		list = append(list, g)
	}
	return list
}

// Owner is whose the token is, for people: who signed in, or the name that an admin gave it.
func (r *APIRecord) Owner() string { return cmp.Or(r.Person, r.Name) }

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
		return &identity.TokenError{Fault: identity.Expired, ID: t.ID, Err: expired(r.Expires, now)}
	}
	return nil
}
