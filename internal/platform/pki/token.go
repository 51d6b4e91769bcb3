package pki

import (
	"cmp"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"heddle/internal/identity"
)

// JoinRecord is what the store keeps of a token for joining.
type JoinRecord struct {
	ID identity.TokenID `json:"id"`
	// Digest is of the secret, which nobody but the token's owner has.
	Digest []byte `json:"digest"`
	// Root is the authority that the token names.
	Root    identity.Fingerprint `json:"root"`
	Made    time.Time            `json:"made"`
	Expires time.Time            `json:"expires"`
	// By is who made it.
	By     string      `json:"by"`
	Labels LabelBounds `json:"labels,omitempty"`
	// For says what joins with it: "" for a host, or ForController.
	For string `json:"for,omitempty"`
	// Replaces is the host whose place is taken with it; "" for a token that takes nobody's.
	Replaces string `json:"replaces,omitempty"`
	// ReplacesID is that host's id: another one of the same name is not meant. "" in what an earlier version wrote.
	ReplacesID string `json:"replacesId,omitempty"`
	// Used says which host has joined with it; nil is none.
	Used *Use `json:"used,omitempty"`

	unknown map[string]json.RawMessage
}

// DecodeJoinRecord reads a record as the store keeps it.
func DecodeJoinRecord(text []byte) (*JoinRecord, error) {
	r := &JoinRecord{}
	var err error
	if r.unknown, err = decodeKeeping(text, r); err != nil {
		return nil, fmt.Errorf("the record of a join token can't be read: %w", err)
	}
	return r, nil
}

// Encode is the record as the store keeps it, with what a newer controller wrote into it.
func (r *JoinRecord) Encode() ([]byte, error) { return encodeKeeping(r, r.unknown) }

// Use is a token's use.
type Use struct {
	Host string `json:"host"`
	// Key is of the host's public key: the same host may ask again, if the answer did not reach it.
	Key identity.Fingerprint `json:"key"`
	At  time.Time            `json:"at"`
}

// LabelBounds are the labels that a host may have, with their values; an empty list of values allows every one.
type LabelBounds map[string][]string

// Check returns an error that names the labels which go beyond the bounds.
func (b LabelBounds) Check(labels map[string]string) error {
	var bad []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		values, ok := b[key]
		if !ok || len(values) > 0 && !slices.Contains(values, labels[key]) {
			bad = append(bad, key+"="+labels[key])
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("it does not allow the labels %s", strings.Join(bad, ", "))
	}
	return nil
}

// JoinTerms are a token's.
type JoinTerms struct {
	Life   time.Duration
	Labels LabelBounds
	By     string
	// Replaces is the host whose place is taken, ReplacesID its id; "" for none.
	Replaces, ReplacesID string
}

// NewJoinToken makes a token for one host, and what is stored of it.
func (a *Authority) NewJoinToken(terms JoinTerms, now time.Time) (identity.JoinToken, *JoinRecord, error) {
	if terms.Life <= 0 {
		return identity.JoinToken{}, nil, errors.New("a token needs a time after which it expires")
	}
	t := identity.NewJoinToken(a.Fingerprint())
	d := t.Digest()
	return t, &JoinRecord{ID: t.ID, Digest: d[:], Root: t.Root, Made: now, Expires: now.Add(terms.Life), By: terms.By,
		Labels: terms.Labels, Replaces: terms.Replaces, ReplacesID: terms.ReplacesID}, nil
}

// ForController is JoinRecord.For of a token by which a controller joins.
const ForController = "controller"

// NewControllerToken makes a token for one controller, and what is stored of it. Who has it gets what makes
// certificates: it is for minutes.
func (a *Authority) NewControllerToken(terms JoinTerms, now time.Time) (identity.JoinToken, *JoinRecord, error) {
	if terms.Life <= 0 {
		return identity.JoinToken{}, nil, errors.New("a token needs a time after which it expires")
	}
	t := identity.NewControllerToken(a.Fingerprint())
	d := t.Digest()
	return t, &JoinRecord{ID: t.ID, Digest: d[:], Root: t.Root, Made: now, Expires: now.Add(terms.Life), By: terms.By,
		For: ForController}, nil
}

// JoinRequest is a host that wants to join.
type JoinRequest struct {
	Token identity.JoinToken
	// Key is of the key in its request for a certificate (KeyOf).
	Key    identity.Fingerprint
	Labels map[string]string
	// Replace: it says that it takes another one's place.
	Replace bool
}

// Redeem returns the record with its use by that host. It is to be stored in the transaction that writes the host, on
// condition that nobody stored another one meanwhile: only then has the token been used. A host that joined with it and
// asks again with the same key gets the record as it is: Used.Host is its name. r is nil for a token that the store
// has not.
func (a *Authority) Redeem(r *JoinRecord, q JoinRequest, host string, now time.Time) (*JoinRecord, error) {
	fault := func(f identity.TokenFault, err error) error {
		return &identity.TokenError{Fault: f, ID: q.Token.ID, Err: err}
	}
	got := q.Token.Digest()
	if r == nil || r.ID != q.Token.ID || subtle.ConstantTimeCompare(got[:], r.Digest) != 1 {
		if !a.knows(q.Token.Root) {
			return nil, fault(identity.WrongCluster, nil)
		}
		return nil, fault(identity.Unknown, nil)
	}
	if !a.knows(q.Token.Root) {
		return nil, fault(identity.WrongCluster, errors.New("it names a root that the cluster no longer trusts"))
	}
	if r.Used != nil && !r.Used.Key.Equal(q.Key) {
		return nil, fault(identity.Used, fmt.Errorf("%s %s joined with it on %s", cmp.Or(r.For, "host"), r.Used.Host,
			stamp(r.Used.At)))
	}
	if now.After(r.Expires) {
		return nil, fault(identity.Expired, expired(r.Expires, now))
	}
	if err := r.replaces(host, q.Replace); err != nil {
		return nil, fault(identity.NotAllowed, err)
	}
	if err := r.Labels.Check(q.Labels); err != nil {
		return nil, fault(identity.NotAllowed, err)
	}
	if r.Used != nil {
		return r, nil
	}
	used := *r
	used.Used = &Use{host, q.Key, now}
	return &used, nil
}

// replaces returns an error unless the token is for the place that a host wants. It says nothing of what hosts there
// are.
func (r *JoinRecord) replaces(host string, wanted bool) error {
	switch {
	case r.Replaces == "" && wanted:
		return errors.New("it takes no host's place (--replace); an admin makes one that does with \"heddle host " +
			"token --replace NAME\"")
	case r.Replaces != "" && r.Replaces != host:
		return fmt.Errorf("it takes the place of host %s, and of no other one", r.Replaces)
	case r.Replaces != "" && !wanted:
		return fmt.Errorf("it takes the place of host %s, whose certificates count no more afterwards: say --replace, "+
			"if that is meant", host)
	}
	return nil
}

// expired says when a token ended, and what the time is: one of two clocks may be wrong.
func expired(end, now time.Time) error {
	return fmt.Errorf("on %s, and it is %s by this controller's clock, which is to be corrected if it is wrong",
		stamp(end),
		stamp(now))
}

func (a *Authority) knows(root identity.Fingerprint) bool {
	for _, r := range a.trust.Roots {
		if identity.FingerprintOf(r).Equal(root) {
			return true
		}
	}
	return false
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
